#include "compiler/export/StatsReport.h"

#include "compiler/cost/Predict.h"
#include "compiler/cost/Units.h"
#include "plan/model/names.h"
#include "support/text/wrapped.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <set>
#include <sstream>

namespace occl::exporter {

namespace {

using cost::bytesText, cost::timeText;

/// Links and ports that are listed; the rest is counted.
constexpr size_t kMaxResources = 8;

std::string percent(uint64_t part, uint64_t whole) {
  uint64_t value = whole == 0 ? 0 : (200 * part + whole) / (2 * whole);
  return std::to_string(value) + " %";
}

std::string counted(uint64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Columns of both tables: so many bytes, a time, and behind a gap what it is of.
constexpr int kBytesWidth = 12, kTimeWidth = 14;
constexpr size_t kTextColumn = kBytesWidth + kTimeWidth + 3;

/// A row, or the head, with its last column on further lines where it is long.
void writeRow(const std::string &bytes, const std::string &time, const std::string &text,
              std::ostream &out) {
  std::ostringstream row;
  row << std::setw(kBytesWidth) << bytes << std::setw(kTimeWidth) << time << "   " << text;
  out << wrapped(row.str(), kTextColumn) << "\n";
}

void writeCounts(const plan::Plan &plan, std::ostream &out) {
  uint32_t mostBlocks = 0;
  for (const plan::RankPlan &rank : plan.ranks)
    mostBlocks = std::max(mostBlocks, rank.numThreadBlocks);
  std::set<uint32_t> channels;
  for (const plan::Connection &connection : plan.connections)
    channels.insert(connection.channel);
  std::vector<uint64_t> opcodes(plan::kNumOpcodes);
  uint64_t messages = 0, signals = 0;
  for (const plan::Instruction &instruction : plan.instructions) {
    ++opcodes[static_cast<size_t>(instruction.opcode)];
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if (operand.kind == plan::OperandKind::Connection)
        ++(plan.connections[operand.index].isCounter ? signals : messages);
  }
  std::ostringstream head;
  head << plan.name << ": " << counted(plan.numRanks, "rank") << ", at most "
       << counted(mostBlocks, "thread block") << " a rank, protocol " << plan::nameOf(plan.protocol)
       << ", depth " << plan.depth << "\n"
       << counted(channels.size(), "channel") << ", "
       << counted(plan.connections.size(), "connection") << "\n"
       << counted(plan.instructions.size(), "instruction") << ", " << counted(messages, "message")
       << ", ";
  if (signals > 0)
    head << counted(signals, "signal") << ", ";
  head << counted(plan.dependencies.size(), "wait") << " between thread blocks\n";
  out << wrapped(head.str(), 2);
  for (size_t i = 0; i < opcodes.size(); ++i)
    if (opcodes[i] > 0)
      out << std::setw(10) << opcodes[i] << "  " << plan::mnemonic(static_cast<plan::Opcode>(i))
          << "\n";
}

/// "port of rank 0 at NVLink, out, 4.20 us (80 %)", of the makespan.
std::string boundText(const plan::Plan &plan, const cost::Prediction &prediction,
                      cost::Picoseconds latency) {
  cost::Bounds bounds = cost::boundsOf(prediction);
  uint64_t largest = std::max({bounds.busiestResource, bounds.busiestBlock, latency});
  std::string text = bounds.resource;
  if (largest == latency) {
    text = "latency: a chain of " + counted(prediction.chainLength, "instruction");
  } else if (largest != bounds.busiestResource) {
    uint32_t rank = 0;
    while (rank + 1 < plan.numRanks && plan.ranks[rank + 1].firstThreadBlock <= bounds.block)
      ++rank;
    text = "work of rank " + std::to_string(rank) + ", thread block " +
           std::to_string(bounds.block - plan.ranks[rank].firstThreadBlock);
  }
  return text + ", " + timeText(largest) + " (" + percent(largest, prediction.makespan) + ")";
}

struct Size {
  uint64_t bytes;
  cost::Prediction prediction;
};

void writePredictions(const plan::Plan &plan, const topology::Topology &topology,
                      const std::vector<Size> &sizes, cost::Picoseconds latency,
                      std::ostream &out) {
  out << "predicted on '" << topology.name << "':\n";
  writeRow("a part", "time", "bound by", out);
  for (const Size &size : sizes)
    writeRow(bytesText(size.bytes), timeText(size.prediction.makespan),
             boundText(plan, size.prediction, latency), out);
}

/// Of the largest size: where the bytes go.
void writeResources(const Size &size, std::ostream &out) {
  std::vector<const cost::ResourceUse *> used;
  for (const cost::ResourceUse &use : size.prediction.resources)
    if (use.bytes > 0)
      used.push_back(&use);
  if (used.empty())
    return;
  std::stable_sort(used.begin(), used.end(),
                   [](const auto *a, const auto *b) { return a->busy > b->busy; });
  out << "links and ports at " << bytesText(size.bytes) << " a part";
  if (used.size() > kMaxResources)
    out << ", the busiest " << kMaxResources << " of " << used.size();
  out << ":\n";
  writeRow("bytes", "time needed", "by", out);
  used.resize(std::min(used.size(), kMaxResources));
  for (const cost::ResourceUse *use : used)
    writeRow(bytesText(use->bytes), timeText(use->busy), use->name, out);
}

} // namespace

support::Status writeStats(const plan::Plan &plan, const topology::Topology &topology,
                           const std::vector<uint64_t> &sizes, std::ostream &out) {
  support::Expected<cost::Picoseconds> latency = cost::predictLatency(plan, topology);
  if (!latency)
    return latency.status();
  std::vector<Size> predicted;
  for (uint64_t bytes : sizes) {
    support::Expected<cost::Prediction> prediction =
        cost::predict(plan, topology, {.bytes = bytes});
    if (!prediction)
      return prediction.status();
    predicted.push_back({bytes, std::move(*prediction)});
  }
  writeCounts(plan, out);
  if (predicted.empty())
    return {};
  writePredictions(plan, topology, predicted, *latency, out);
  writeResources(predicted.back(), out);
  return {};
}

} // namespace occl::exporter
