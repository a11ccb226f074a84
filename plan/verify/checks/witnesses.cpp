#include "plan/verify/checks/witnesses.h"

#include <algorithm>

namespace occl::plan::verify {

namespace {

class WitnessChecker {
public:
  explicit WitnessChecker(const Network &network) : plan(network.plan), network(network) {}

  Finding check(uint32_t index, KnownOrder &order) {
    std::span<const Place> places = plan.placesOf(plan.witnesses[index]);
    name = "witness " + std::to_string(index) + ": ";
    path = "witnesses[" + std::to_string(index) + "]";
    // The places come from the file; the network is indexed only by those that exist.
    for (const Place &place : places)
      if (!exists(place))
        return error("there is no instruction at " + describePlace(place));
    // Both ends on one rank, since only there clocks can use the order: the way between goes
    // through others.
    if (places.size() < 2 || places.front().rank != places.back().rank)
      return error("it has to lead from an instruction to another one of the same rank");
    // From the last place back to the first, and complete as soon as any step of the way is:
    // messages alone only keep their ends in step.
    order = {network.at(places.back()), network.at(places.front()), false};
    for (size_t i = 0; i + 1 < places.size(); ++i) {
      uint32_t from = network.at(places[i]), to = network.at(places[i + 1]);
      // The strongest reason first: an order by program or dependency makes the whole way one of
      // complete instructions.
      if (isComplete(from, to))
        order.isComplete = true;
      else if (!isMessage(from, to))
        return wrongStep(from, to);
    }
    return {};
  }

private:
  bool exists(const Place &place) const {
    return place.rank < plan.numRanks &&
           place.threadBlock < plan.ranks[place.rank].numThreadBlocks &&
           place.instruction <
               plan.threadBlocks[plan.ranks[place.rank].firstThreadBlock + place.threadBlock]
                   .numInstructions;
  }

  /// Whether `from` is complete when `to` begins, by program order or a dependency.
  bool isComplete(uint32_t from, uint32_t to) const {
    if (network.blockOf[from] == network.blockOf[to])
      return from < to;
    uint32_t rank = network.rankOf(to); // and of all that it depends on
    std::span<const Dependency> dependencies = plan.dependenciesOf(plan.instructions[to]);
    return std::any_of(dependencies.begin(), dependencies.end(),
                       [&](const Dependency &d) { return network.target(rank, d) == from; });
  }

  /// Whether `to` receives what `from` sends, on an ordered connection.
  bool isMessage(uint32_t from, uint32_t to) const {
    const Instruction &instruction = plan.instructions[to];
    for (uint32_t i = 0; i < instruction.numSources; ++i) {
      uint32_t operand = instruction.firstOperand + i;
      const Operand &source = plan.operands[operand];
      if (source.kind == OperandKind::Connection && orders(plan.connections[source.index]) &&
          network.sendOf(operand) == from)
        return true;
    }
    return false;
  }

  Finding wrongStep(uint32_t from, uint32_t to) const {
    Finding finding = error("it takes a step that is neither program order, nor a dependency, nor "
                            "a message of an ordered connection");
    finding->place = placeOf(plan, to);
    finding->location = plan.instructions[to].location;
    finding->witness = {noteAt(plan, from, "from "), noteAt(plan, to, "to ")};
    return finding;
  }

  Finding error(const std::string &message) const {
    return VerifyError{.code = Code::WrongWitness, .message = name + message, .path = path};
  }

  const Plan &plan;
  const Network &network;
  std::string name;
  std::string path; // of the witness in a plan file
};

} // namespace

std::span<const KnownOrder> KnownOrders::of(uint32_t later) const {
  auto isBefore = [](const KnownOrder &order, uint32_t index) { return order.later < index; };
  auto first = std::lower_bound(orders.begin(), orders.end(), later, isBefore);
  // Sorted by the later one, so all that are known of an instruction lie side by side.
  auto end = first;
  while (end != orders.end() && end->later == later)
    ++end;
  return {first, end};
}

Finding checkWitnesses(const Network &network, KnownOrders &known) {
  WitnessChecker checker(network);
  known.orders.resize(network.plan.witnesses.size());
  for (uint32_t i = 0; i < known.orders.size(); ++i)
    if (Finding finding = checker.check(i, known.orders[i]))
      return finding;
  std::stable_sort(known.orders.begin(), known.orders.end(),
                   [](const KnownOrder &a, const KnownOrder &b) { return a.later < b.later; });
  return {};
}

} // namespace occl::plan::verify
