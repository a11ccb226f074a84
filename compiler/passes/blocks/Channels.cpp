#include "compiler/passes/blocks/Channels.h"

#include "llvm/ADT/IntEqClasses.h"

#include <map>
#include <numeric>
#include <optional>
#include <set>

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;

namespace {

constexpr int32_t kNoColor = -1;

template <typename Program, typename Function> void forEachStep(Program &program, Function fn) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (auto &step : program.ranks[r].steps)
      fn(r, step);
}

/// Calls fn(place) for each message that the instruction receives or sends.
template <typename Function> void forEachEnd(const Instruction &instruction, Function fn) {
  forEachMessage(instruction.sources, fn);
  forEachMessage(instruction.destinations, fn);
}

class FlowColoring {
public:
  FlowColoring(const Program &program, uint32_t numColors)
      : program(program), numColors(numColors), load(program.ranks.size() * numColors, 0) {}

  std::vector<int32_t> run() {
    // Flows are coloured one after the other, the largest first; those for which the source asks
    // for blocks or channels are left alone.
    findFlows();
    std::vector<int32_t> ofFlow(visits.size(), kNoColor);
    for (uint32_t flow : largestFirst())
      if (!isAsked[flow])
        ofFlow[flow] = choose(visits[flow]);
    std::vector<int32_t> colors(program.numTransfers);
    for (uint32_t t = 0; t < program.numTransfers; ++t)
      colors[t] = ofFlow[flows[t]];
    return colors;
  }

private:
  /// A flow's work on a rank.
  struct Visit {
    uint32_t rank;
    uint64_t work;
  };

  void findFlows() {
    // Transfers that meet in an instruction belong together, as the instruction has one thread
    // block: equivalence classes, by union-find.
    flows.grow(program.numTransfers);
    forEachStep(program, [&](uint32_t, const Step &step) {
      std::optional<uint32_t> first;
      forEachEnd(step.instruction, [&](const Place &place) {
        flows.join(*(first ? first : first = place.index), place.index);
      });
    });
    flows.compress();
    visits.resize(flows.getNumClasses());
    isAsked.resize(flows.getNumClasses());
    // How much work each flow is on each of its ranks.
    forEachStep(program, [&](uint32_t rank, const Step &step) {
      std::optional<uint32_t> flow;
      forEachEnd(step.instruction, [&](const Place &place) {
        flow = flows[place.index];
        if (place.channel >= 0)
          isAsked[*flow] = true;
      });
      if (!flow)
        return;
      // What is asked for is not coloured.
      if (step.instruction.threadBlock >= 0)
        isAsked[*flow] = true;
      // Steps are visited rank by rank, so that a flow's last visit is this rank's or another one
      // begins.
      if (visits[*flow].empty() || visits[*flow].back().rank != rank)
        visits[*flow].push_back({rank, 0});
      visits[*flow].back().work += program.weights.workOf(step.instruction);
    });
  }

  std::vector<uint32_t> largestFirst() const {
    // By total work, stable for equal ones.
    std::vector<uint64_t> work(visits.size(), 0);
    for (auto [total, ranks] : llvm::zip(work, visits))
      for (const Visit &visit : ranks)
        total += visit.work;
    std::vector<uint32_t> order(visits.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return work[a] > work[b]; });
    return order;
  }

  /// The color under which the fullest of the flow's ranks is least full.
  int32_t choose(llvm::ArrayRef<Visit> ranks) {
    // The makespan first, then the sum of loads: of colours that are as good for the fullest rank,
    // the one that leaves least elsewhere.
    std::pair<uint64_t, uint64_t> best = {UINT64_MAX, 0};
    uint32_t choice = 0;
    for (uint32_t color = 0; color < numColors; ++color) {
      std::pair<uint64_t, uint64_t> score = {0, 0}; // greatest load, sum of loads
      for (const Visit &visit : ranks) {
        uint64_t total = loadOf(visit.rank, color) + visit.work;
        score = {std::max(score.first, total), score.second + total};
      }
      if (score < best) {
        best = score;
        choice = color;
      }
    }
    for (const Visit &visit : ranks)
      loadOf(visit.rank, choice) += visit.work;
    return static_cast<int32_t>(choice);
  }

  uint64_t &loadOf(uint32_t rank, uint32_t color) { return load[size_t(rank) * numColors + color]; }

  const Program &program;
  uint32_t numColors;
  llvm::IntEqClasses flows; // of transfers
  std::vector<llvm::SmallVector<Visit, 2>> visits;
  std::vector<bool> isAsked;
  std::vector<uint64_t> load; // of each rank under each color
};

/// Numbers the channels of each route: a source and its destinations.
class ChannelNumbering {
public:
  ChannelNumbering(Program &program, llvm::ArrayRef<int32_t> colors, uint32_t maxChannels)
      : program(program), colors(colors), maxChannels(maxChannels), ends(program.numTransfers),
        channels(program.numTransfers, -1) {}

  LogicalResult run() {
    findEnds();
    // Channels asked for come first, so that the others keep away from them.
    for (bool isAsked : {true, false})
      for (uint32_t t = 0; t < program.numTransfers; ++t)
        if (!ends[t].receivers.empty() && (ends[t].asked >= 0) == isAsked && failed(number(t)))
          return failure();
    forEachStep(program, [&](uint32_t, Step &step) {
      for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
        forEachMessage(*places, [&](Place &place) {
          place.channel = static_cast<int16_t>(channels[place.index]);
        });
    });
    return success();
  }

private:
  struct Ends {
    uint32_t sender = 0;
    int32_t asked = -1; // channel
    LocationAttr location;
    llvm::SmallVector<uint32_t, 1> receivers;
    llvm::SmallVector<int32_t, 2> blocks; // asked for: the sender's, then the receivers'
  };
  /// Of the connections from one rank to the same others.
  struct RouteChannels {
    std::set<uint32_t> used;
    std::map<std::pair<int32_t, std::vector<int32_t>>, uint32_t> ofKind; // of color and blocks
  };

  void findEnds() {
    // The thread blocks at both ends are part of what a channel is for: the sender's first, then
    // the receivers'.
    forEachStep(program, [&](uint32_t rank, const Step &step) {
      forEachMessage(step.instruction.destinations, [&](const Place &place) {
        Ends &end = ends[place.index];
        end.sender = rank;
        end.asked = place.channel;
        end.location = step.location;
        end.blocks.insert(end.blocks.begin(), step.instruction.threadBlock);
      });
      forEachMessage(step.instruction.sources, [&](const Place &place) {
        ends[place.index].receivers.push_back(rank);
        ends[place.index].blocks.push_back(step.instruction.threadBlock);
      });
    });
  }

  LogicalResult number(uint32_t transfer) {
    // Messages with the same route, colour and thread blocks share a channel; a new combination
    // gets the first channel that its route does not use.
    const Ends &end = ends[transfer];
    RouteChannels &route = routes[{end.sender, {end.receivers.begin(), end.receivers.end()}}];
    auto channel = static_cast<uint32_t>(std::max(end.asked, 0));
    if (end.asked < 0) {
      int32_t color = colors.empty() ? kNoColor : colors[transfer];
      auto [entry, isNew] =
          route.ofKind.try_emplace({color, {end.blocks.begin(), end.blocks.end()}}, 0);
      if (isNew) {
        entry->second = program.defaultChannel;
        while (route.used.count(entry->second))
          ++entry->second;
      }
      channel = entry->second;
    }
    route.used.insert(channel);
    channels[transfer] = static_cast<int32_t>(channel);
    return channel < maxChannels ? success() : report(end, channel);
  }

  LogicalResult report(const Ends &end, uint32_t channel) const {
    auto error = emitError(end.location);
    bool isAsked = end.asked >= 0;
    if (isAsked)
      error << "this asks for channel " << channel;
    else
      error << "between rank " << end.sender << " and rank " << end.receivers.front()
            << " this needs a channel of its own, the next is channel " << channel;
    error << ", but with --max-channels " << maxChannels << " the last one is channel "
          << maxChannels - 1 << "; allow more";
    // Here nobody knows any more where a channel was asked for.
    if (isAsked)
      error << ", or give --share-channels if --instances or 'parallelize' has asked for it";
    return error << (isAsked ? " [E104]" : " [E105]");
  }

  Program &program;
  llvm::ArrayRef<int32_t> colors;
  uint32_t maxChannels;
  std::vector<Ends> ends; // of each transfer
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, RouteChannels> routes;
  std::vector<int32_t> channels; // of each transfer
};

} // namespace

std::vector<int32_t> passes::colorFlows(const Program &program, uint32_t numColors) {
  return FlowColoring(program, numColors).run();
}

LogicalResult passes::assignChannels(Program &program, llvm::ArrayRef<int32_t> colors,
                                     uint32_t maxChannels) {
  return ChannelNumbering(program, colors, maxChannels).run();
}
