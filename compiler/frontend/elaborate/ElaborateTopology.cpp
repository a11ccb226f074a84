// Builds a topology from its declaration.
#include "compiler/frontend/elaborate/Elaborator.h"
#include "compiler/topology/Machines.h"
#include "plan/model/limits.h"
#include "support/suggestion.h"

#include <algorithm>

namespace occl::frontend {
namespace {

using topology::Costs, topology::Topology;
using Dimension = Quantity::Dimension;

constexpr int64_t kMaxLatency = topology::kMaxLatency;
constexpr int64_t kMaxBandwidth = topology::kMaxBandwidth;

/// A constant of Costs: where it is, and what it may be.
struct CostInfo {
  std::string_view name;
  Dimension dimension;
  int64_t low, high;
  void (*set)(Costs &costs, uint64_t value);
};

#define OCCL_COST(name, field, dimension, low, high)                                               \
  CostInfo {                                                                                       \
    name, Dimension::dimension, low, high, [](Costs &costs, uint64_t value) {                      \
      costs.field = static_cast<decltype(costs.field)>(value);                                     \
    }                                                                                              \
  }

constexpr int64_t kMaxSize = int64_t{1} << 40;
const CostInfo kCosts[] = {
    OCCL_COST("start", start, Time, 0, kMaxLatency),
    OCCL_COST("instruction", instruction, Time, 0, kMaxLatency),
    OCCL_COST("dependency", dependency, Time, 0, kMaxLatency),
    OCCL_COST("handover", handover, Time, 0, kMaxLatency),
    OCCL_COST("read", read, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("write", write, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("push", push, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("pull", pull, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("memory", memory, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("cache", cacheBytes, Size, 0, kMaxSize),
    OCCL_COST("tile", tileBytes, Size, 1, kMaxSize),
    OCCL_COST("slices", slices, Number, 1, 1024),
    OCCL_COST("line_bandwidth", lines.bandwidth, Bandwidth, 1, kMaxBandwidth),
    OCCL_COST("line_straight", lines.straightBytes, Size, 0, kMaxSize),
    OCCL_COST("line_instruction", lines.instruction, Time, 0, kMaxLatency),
    OCCL_COST("line_tile", lines.tileBytes, Size, 1, kMaxSize),
    OCCL_COST("executors", executors, Number, 0, 1 << 20),
    OCCL_COST("cores", cores, Number, 0, 1 << 20),
    OCCL_COST("fetched", fetched, Number, 0, 1),
};
#undef OCCL_COST

const char *nameOf(Dimension dimension) {
  constexpr const char *kNames[] = {"nothing", "a number", "a time", "a bandwidth", "a size"};
  return kNames[static_cast<size_t>(dimension)];
}

} // namespace

bool Elaborator::runTopology(Topology &result) {
  // A topology is executed like an algorithm: declarations with loops and parameters, whose items
  // add to the result.
  stack.resize(algorithm.numSlots);
  info.name = algorithm.name;
  result.name = algorithm.name;
  building = &result;
  if (!bindParameters())
    return false;
  Flow flow = execute(algorithm.body);
  if (flow == Flow::Stop || stopped || diagnostics.hasErrors())
    return false;
  if (result.numRanks() == 0)
    error(DiagnosticCode::NoTopology, algorithm.nameRange,
          "the topology '" + result.name + "' has no ranks; it needs a 'node'");
  return !diagnostics.hasErrors();
}

void Elaborator::executeTopologyItem(const TopologyItem &item) {
  // One case for each kind of item; costs may be set before or after nodes.
  switch (item.kind) {
  case TopologyItemKind::Machine:
    if (item.name == "gpu")
      building->costs = topology::gpuCosts();
    else if (item.name == "host")
      building->costs = topology::hostCosts();
    else
      error(DiagnosticCode::UnknownCost, item.nameRange,
            "there is no kind of machine '" + std::string(item.name) +
                "'; known are 'gpu' and "
                "'host'");
    break;
  case TopologyItemKind::Cost:
    addCost(item);
    break;
  case TopologyItemKind::Protocol:
    addProtocol(item);
    break;
  case TopologyItemKind::Node:
    addNode(item);
    break;
  case TopologyItemKind::Link:
    addLink(item);
    break;
  case TopologyItemKind::Switch:
    addSwitch(item);
    break;
  case TopologyItemKind::Nic:
    addNic(item);
    break;
  }
}

bool Elaborator::evaluateQuantity(const Quantity &quantity, int64_t low, int64_t high,
                                  uint64_t &out) {
  int64_t value;
  // A number and its unit's scale: "100 GB/s" is 100 * 10^9. The product may overflow, upwards or
  // downwards, and both have a message.
  if (!evaluateScalar(*quantity.expr, value))
    return false;
  int64_t scaled = 0;
  bool overflows = __builtin_mul_overflow(value, quantity.scale, &scaled);
  bool isTooSmall = overflows ? value < 0 : scaled < low;
  bool fits = !overflows && !isTooSmall && scaled <= high;
  out = fits ? static_cast<uint64_t>(scaled) : 0;
  if (!fits)
    error(DiagnosticCode::BadQuantity, quantity.range,
          std::string(isTooSmall ? "this is too small: " : "this is more than the model allows: ") +
              std::to_string(value) + valuesIn(*quantity.expr));
  return fits;
}

void Elaborator::addCost(const TopologyItem &item) {
  // Costs have names, as in docs/cost_model.md, and a dimension and a range each.
  auto known = std::find_if(std::begin(kCosts), std::end(kCosts),
                            [&](const CostInfo &entry) { return entry.name == item.name; });
  if (known == std::end(kCosts)) {
    std::vector<std::string_view> names;
    for (const CostInfo &entry : kCosts)
      names.push_back(entry.name);
    error(DiagnosticCode::UnknownCost, item.nameRange,
          "there is no cost '" + std::string(item.name) + "'" +
              support::didYouMean(support::suggest(std::string(item.name), names)));
    return;
  }
  // 64KiB is a number, too.
  bool isBytes = known->dimension == Dimension::Size && item.value.dimension == Dimension::Number;
  if (known->dimension != item.value.dimension && !isBytes) {
    error(DiagnosticCode::BadUnit, item.value.range,
          "'" + std::string(item.name) + "' is " + nameOf(known->dimension) + ", this is " +
              nameOf(item.value.dimension));
    return;
  }
  // Set by a function of the table's row.
  uint64_t value;
  if (evaluateQuantity(item.value, known->low, known->high, value))
    known->set(building->costs, value);
}

void Elaborator::addProtocol(const TopologyItem &item) {
  // By the protocol's number in the plan.
  constexpr std::string_view kNames[] = {"simple", "ll", "ll128"};
  auto known = std::find(std::begin(kNames), std::end(kNames), item.name);
  if (known == std::end(kNames)) {
    error(DiagnosticCode::UnknownCost, item.nameRange,
          "there is no protocol '" + std::string(item.name) +
              "'; known are 'simple', 'll' and 'll128'");
    return;
  }
  if (item.bandwidth.expr)
    error(DiagnosticCode::BadAttributes, item.bandwidth.range,
          "a protocol has no bandwidth; 'wire' says how many bytes it sends for 1000");
  topology::ProtocolCosts &costs =
      building->costs.protocols[static_cast<size_t>(known - std::begin(kNames))];
  uint64_t value;
  // Each attribute may be left out, and then keeps the machine's value.
  if (item.latency.expr && evaluateQuantity(item.latency, 0, kMaxLatency, value))
    costs.latency = value;
  if (item.wire.expr && evaluateQuantity(item.wire, 1000, 1'000'000, value))
    costs.wireBytesPerThousand = static_cast<uint32_t>(value);
}

bool Elaborator::checkCount(const TopologyItem &item, uint64_t count, uint64_t limit,
                            const char *what) {
  if (count <= limit)
    return true;
  error(DiagnosticCode::TopologyTooLarge, item.range,
        "a topology has at most " + std::to_string(limit) + " " + what);
  stopped = true;
  return false;
}

void Elaborator::addNode(const TopologyItem &item) {
  uint64_t gpus;
  constexpr int64_t kMaxRanks = plan::limits::kMaxRanks;
  if (evaluateQuantity(item.value, 1, kMaxRanks, gpus) &&
      checkCount(item, building->numNodes() + uint64_t{1}, topology::kMaxNodes, "nodes") &&
      checkCount(item, building->numRanks() + gpus, kMaxRanks, "ranks"))
    building->addNode(static_cast<uint32_t>(gpus));
}

bool Elaborator::evaluateRank(const Expr &expr, uint32_t &out) {
  int64_t rank;
  if (!evaluateScalar(expr, rank))
    return false;
  if (rank < 0 || rank >= building->numRanks()) {
    error(DiagnosticCode::UnknownRank, expr.range,
          "there is no rank " + std::to_string(rank) + " yet; the nodes so far have " +
              std::to_string(building->numRanks()) + " ranks");
    return false;
  }
  out = static_cast<uint32_t>(rank);
  return true;
}

bool Elaborator::evaluateRanks(const TopologyItem &item, std::vector<uint32_t> &out) {
  // "0, 2, 4..8": single ranks and ranges, in any order, each rank once.
  for (const RankRange &range : item.ranks) {
    uint32_t first;
    if (!evaluateRank(*range.first, first))
      return false;
    int64_t last = int64_t{first} + 1;
    if (range.last && !evaluateScalar(*range.last, last))
      return false;
    // A range must have an end behind its begin, and ranks that exist so far.
    if (last > building->numRanks() || last <= first) {
      error(DiagnosticCode::UnknownRank, join(range.first->range, range.last->range),
            last <= first
                ? "this range of ranks is empty"
                : "there is no rank " + std::to_string(last - 1) + " yet; the nodes so far have " +
                      std::to_string(building->numRanks()) + " ranks");
      return false;
    }
    // Ranges cost steps, so that a file cannot ask for billions of ranks in a line.
    if (!spendSteps(static_cast<uint64_t>(last) - first, range.first->range))
      return false;
    for (int64_t rank = first; rank < last; ++rank)
      out.push_back(static_cast<uint32_t>(rank));
  }
  // Sorted on a copy: the order of the ranks in the text stays.
  std::vector<uint32_t> sorted = out;
  std::sort(sorted.begin(), sorted.end());
  auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated == sorted.end())
    return true;
  error(DiagnosticCode::BadEnds, item.range,
        "rank " + std::to_string(*repeated) + " is given twice");
  return false;
}

bool Elaborator::evaluateAttributes(const TopologyItem &item, uint64_t &bandwidth,
                                    uint64_t &latency) {
  latency = 0;
  if (item.wire.expr)
    error(DiagnosticCode::BadAttributes, item.wire.range, "only a protocol has 'wire'");
  if (!item.bandwidth.expr) {
    error(DiagnosticCode::BadAttributes, item.range,
          "a bandwidth is missing: bandwidth <number> GB/s");
    return false;
  }
  return evaluateQuantity(item.bandwidth, 1, kMaxBandwidth, bandwidth) &&
         (!item.latency.expr || evaluateQuantity(item.latency, 0, kMaxLatency, latency));
}

void Elaborator::addLink(const TopologyItem &item) {
  // Both ends and what the link can do; a link to oneself is a mistake and not nothing.
  topology::Link link;
  if (!evaluateRank(*item.ranks[0].first, link.from) ||
      !evaluateRank(*item.ranks[1].first, link.to) ||
      !evaluateAttributes(item, link.bandwidth, link.latency))
    return;
  if (link.from == link.to) {
    error(DiagnosticCode::BadEnds, item.range,
          "rank " + std::to_string(link.from) + " needs no link to itself");
    return;
  }
  // Counted before it is added, as two links if it is duplex.
  uint64_t count = building->links().size() + (item.isDuplex ? 2 : 1);
  if (!checkCount(item, count, topology::kMaxLinks, "links"))
    return;
  building->addLink(link);
  std::swap(link.from, link.to);
  if (item.isDuplex)
    building->addLink(link);
}

void Elaborator::addSwitch(const TopologyItem &item) {
  topology::Switch entry;
  entry.name = item.name;
  if (!evaluateRanks(item, entry.ranks) ||
      !evaluateAttributes(item, entry.bandwidth, entry.latency))
    return;
  numPorts += entry.ranks.size();
  if (checkCount(item, numPorts, topology::kMaxSwitchPorts, "ports of switches"))
    building->addSwitch(std::move(entry));
}

void Elaborator::addNic(const TopologyItem &item) {
  // The ranks that use the NIC are on one node, whose traffic it carries.
  topology::Nic nic;
  if (!evaluateRanks(item, nic.ranks) || !evaluateAttributes(item, nic.bandwidth, nic.latency))
    return;
  nic.node = building->nodeOf(nic.ranks[0]);
  for (uint32_t rank : nic.ranks)
    if (building->nodeOf(rank) != nic.node) {
      error(DiagnosticCode::BadEnds, item.range,
            "a NIC belongs to one node; rank " + std::to_string(nic.ranks[0]) + " is on node " +
                std::to_string(nic.node) + ", rank " + std::to_string(rank) + " on node " +
                std::to_string(building->nodeOf(rank)));
      return;
    }
  if (checkCount(item, building->nics().size() + 1, topology::kMaxNics, "NICs"))
    building->addNic(std::move(nic));
}

} // namespace occl::frontend
