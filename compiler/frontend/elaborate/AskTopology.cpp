// What a program learns from its topology, and where it cannot move chunks.
#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>

namespace occl::frontend {

bool Elaborator::evaluateTopologyQuery(const Expr &expr, int64_t &out) {
  // A topology's own declaration may ask about what it has built so far.
  const DeclaredTopology *declared = options.topology;
  const topology::Topology *machine = declared ? &declared->topology : building;
  if (!machine) {
    error(DiagnosticCode::TopologyNeeded, expr.range,
          "this asks about the topology; give one with --topology <file>");
    return false;
  }
  // Arguments are numbers of nodes or ranks, by the question. Each is checked against what exists;
  // the second of rank(node, local) against the size of that node.
  int64_t arguments[2] = {0, 0};
  auto query = static_cast<TopologyQuery>(expr.value);
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    if (!evaluateScalar(*expr.operands[i], arguments[i]))
      return false;
    bool isNode = query == TopologyQuery::Size || query == TopologyQuery::Nics ||
                  (query == TopologyQuery::Rank && i == 0);
    int64_t limit = isNode ? machine->numNodes() : machine->numRanks();
    if (query == TopologyQuery::Rank && i == 1)
      limit = machine->ranksOf(static_cast<uint32_t>(arguments[0]));
    if (arguments[i] >= 0 && arguments[i] < limit)
      continue;
    Diagnostic &diagnostic = error(DiagnosticCode::NotInTopology, expr.operands[i]->range,
                                   std::string("there is no ") + (isNode ? "node " : "rank ") +
                                       std::to_string(arguments[i]) +
                                       " here; the numbers are 0 to " + std::to_string(limit - 1));
    if (declared)
      diagnostic.note(declared->place, "in this topology");
    return false;
  }
  return answer(*machine, query, static_cast<uint32_t>(arguments[0]),
                static_cast<uint32_t>(arguments[1]), expr, out);
}

bool Elaborator::answer(const topology::Topology &machine, TopologyQuery query, uint32_t a,
                        uint32_t b, const Expr &expr, int64_t &out) {
  // The language's questions as those of Topology; each has the arguments that it needs.
  switch (query) {
  case TopologyQuery::Ranks:
    out = machine.numRanks();
    return true;
  case TopologyQuery::Nodes:
    out = machine.numNodes();
    return true;
  case TopologyQuery::Gpus:
    return answerGpus(machine, expr, out);
  case TopologyQuery::Size:
    out = machine.ranksOf(a);
    return true;
  case TopologyQuery::Node:
    out = machine.nodeOf(a);
    return true;
  case TopologyQuery::Local:
    out = a - machine.firstRankOf(machine.nodeOf(a));
    return true;
  case TopologyQuery::Rank:
    out = machine.firstRankOf(a) + b;
    return true;
  case TopologyQuery::HasLink:
    out = a != b && machine.route(a, b, 0).has_value();
    return true;
  case TopologyQuery::Nics:
    out = static_cast<int64_t>(machine.nicsOfNode(a).size());
    return true;
  case TopologyQuery::Nic: {
    // The NIC's number within its node, since programs distribute the ranks of a node over its
    // NICs.
    const std::vector<uint32_t> &own = machine.nicsOfRank(a);
    const std::vector<uint32_t> &all = machine.nicsOfNode(machine.nodeOf(a));
    out = own.empty() ? -1 : std::find(all.begin(), all.end(), own[0]) - all.begin();
    return true;
  }
  case TopologyQuery::Bandwidth:
    // In MB/s and ns: integers that a program can compute with.
    out = static_cast<int64_t>(machine.bandwidth(a, b) / 1'000'000);
    return true;
  case TopologyQuery::Latency: {
    std::optional<topology::Route> way = a == b ? std::nullopt : machine.route(a, b, 0);
    out = way ? static_cast<int64_t>(way->latency / topology::kNanosecond) : 0;
    return true;
  }
  }
  return false;
}

bool Elaborator::answerGpus(const topology::Topology &machine, const Expr &expr, int64_t &out) {
  // The number of GPUs of a node, if all have the same: otherwise the answer would be wrong for
  // some.
  if (machine.numNodes() == 0) {
    out = 0;
    return true;
  }
  out = machine.ranksOf(0);
  for (uint32_t node = 1; node < machine.numNodes(); ++node)
    if (machine.ranksOf(node) != out) {
      Diagnostic &diagnostic = error(
          DiagnosticCode::UnevenNodes, expr.range,
          "node 0 has " + std::to_string(out) + " GPUs and node " + std::to_string(node) + " has " +
              std::to_string(machine.ranksOf(node)) + "; ask with topology.size(node)");
      if (options.topology)
        diagnostic.note(options.topology->place, "in this topology");
      return false;
    }
  return true;
}

bool Elaborator::checkNumRanks() {
  const DeclaredTopology *declared = options.topology;
  if (!declared || declared->topology.numRanks() == info.numRanks)
    return true;
  error(DiagnosticCode::RanksMismatch, algorithm.collectiveRange,
        "this has " + std::to_string(info.numRanks) + " ranks, the topology '" +
            declared->topology.name + "' has " + std::to_string(declared->topology.numRanks()))
      .note(declared->place, "declared here");
  return false;
}

bool Elaborator::checkLinks(const Expr &expr, uint32_t from, uint32_t to) {
  const DeclaredTopology *declared = options.topology;
  if (!declared || from == to)
    return true;
  if (lastLink == std::pair(from, to) || declared->topology.route(from, to, 0)) {
    lastLink = {from, to};
    return true;
  }
  error(DiagnosticCode::NoLink, expr.range,
        "there is no link from rank " + std::to_string(from) + " to rank " + std::to_string(to))
      .note(declared->place, "in this topology");
  return false;
}

} // namespace occl::frontend
