#include "plan/verify/verifier.h"

#include "plan/verify/checks/lifetimes.h"
#include "plan/verify/checks/postcondition.h"
#include "plan/verify/checks/races.h"
#include "plan/verify/checks/shape.h"
#include "plan/verify/checks/witnesses.h"
#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>

namespace occl::plan {

namespace {

using verify::Finding;

const char *nameOf(Proof proof) {
  switch (proof) {
  case Proof::Shape:
    return "malformed plan";
  case Proof::Matching:
    return "messages do not match";
  case Proof::Deadlock:
    return "deadlock";
  case Proof::Race:
    return "race";
  case Proof::Postcondition:
    return "wrong result";
  case Proof::Lifetime:
    return "access outside of a buffer's lifetime";
  }
  return "error";
}

/// "1 message", "2 messages"
std::string counted(uint64_t count, const char *one, const char *several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

/// The proofs about values and their order, and what else goes by an execution: independent of each
/// other, so that they run side by side.
class Proofs {
public:
  Proofs(const verify::Network &network, const verify::Execution &execution)
      : network(network), execution(execution) {}

  /// The first finding in the order of the modes, races before results. Adds to `facts` what was
  /// learnt.
  Finding run(const VerifyOptions &options, VerifyFacts &facts) {
    if (Finding finding = verify::checkWitnesses(network, known))
      return finding;
    const Plan &plan = network.plan;
    // Each alias mode is proved by itself: input and output share memory in one and not in the
    // other.
    for (AliasMode mode : {AliasMode::OutOfPlace, AliasMode::InPlace})
      if (mode == AliasMode::OutOfPlace ? plan.outOfPlace : plan.inPlace)
        addMode(mode);
    if (options.findSmallestDepth)
      proofs.push_back([&] {
        facts.smallestDepth = verify::smallestDepth(network, plan.depth);
        return Finding();
      });
    // Proofs run side by side, but the first in their order is reported, so that the same plan
    // always gives the same error. One that begins behind a known finding is skipped.
    std::vector<Finding> findings(proofs.size());
    std::atomic<size_t> first =
        proofs.size(); // that has found something: later ones need not begin
    support::parallelFor(proofs.size(), plan.instructions.size(), [&](size_t i) {
      if (i > first || !(findings[i] = proofs[i]()))
        return;
      // The smallest index wins: a compare-exchange that loses to a smaller one leaves it.
      for (size_t before = first; i < before && !first.compare_exchange_weak(before, i);) {
      }
    });
    for (uint64_t number : searches)
      facts.searchedOrders += number;
    return first < findings.size() ? findings[first] : Finding();
  }

private:
  void addMode(AliasMode mode) {
    proofs.push_back([this, mode] {
      return verify::checkRaces(network, execution, known, mode,
                                searches[static_cast<size_t>(mode)]);
    });
    proofs.push_back(
        [this, mode] { return verify::checkPostcondition(network, execution, mode, keys); });
  }

  const verify::Network &network;
  const verify::Execution &execution;
  const verify::Keys keys;
  verify::KnownOrders known;
  uint64_t searches[2] = {0, 0}; // of each mode
  std::vector<std::function<Finding()>> proofs;
};

/// Adds what the plan consists of.
void count(const verify::Network &network, VerifyFacts &facts) {
  const Plan &plan = network.plan;
  facts.outOfPlace = plan.outOfPlace;
  facts.inPlace = plan.inPlace;
  facts.result = plan.hasPostcondition;
  facts.instructions = plan.instructions.size();
  facts.messages = 0;
  for (uint32_t c = 0; c < plan.connections.size(); ++c)
    (plan.connections[c].isCounter ? facts.signals : facts.messages) += network.numMessages(c);
  facts.connections = plan.connections.size();
  facts.dependencies = plan.dependencies.size();
  for (const RankPlan &rank : plan.ranks)
    facts.threadBlocks = std::max(facts.threadBlocks, rank.numThreadBlocks);
}

VerifyResult prove(const Plan &plan, const VerifyOptions &options) {
  // In this order, as each proof relies on the ones before: indices in range, then who receives
  // what, then one complete execution, by which lifetimes, races and values are checked.
  if (Finding finding = verify::checkShape(plan, options.limits))
    return {finding, {}};
  verify::Network network(plan);
  if (Finding finding = verify::checkMatching(network))
    return {finding, {}};
  verify::Execution execution;
  if (Finding finding = verify::checkDeadlock(network, execution))
    return {finding, {}};
  if (Finding finding = verify::checkLifetimes(network, execution))
    return {finding, {}};
  VerifyFacts facts;
  if (Finding finding = Proofs(network, execution).run(options, facts))
    return {finding, {}};
  count(network, facts);
  return {{}, facts};
}

constexpr const char *kNoResult = ", except for the result (no postcondition was given, so nothing "
                                  "is known about what it computes)";

std::string modesText(const VerifyFacts &facts) {
  if (facts.outOfPlace && facts.inPlace)
    return "in place and out of place";
  return facts.inPlace ? "in place" : "out of place";
}

} // namespace

VerifyResult verifyPlan(const Plan &plan, const VerifyOptions &options) {
  try {
    return prove(plan, options);
  } catch (const std::exception &failure) { // of the standard library: no memory, no random numbers
    return {VerifyError{.code = Code::CannotVerify,
                        .message = std::string("the plan cannot be verified: ") + failure.what()},
            {}};
  }
}

std::string VerifyResult::text() const {
  if (isOk())
    // One sentence for people and for logs; parts that say nothing are left out.
    return "proved " + modesText(facts) + (facts.result ? "" : kNoResult) + ": " +
           counted(facts.instructions, "instruction", "instructions") + ", " +
           counted(facts.messages, "message", "messages") + " on " +
           counted(facts.connections, "connection", "connections") + ", " +
           (facts.signals == 0 ? "" : counted(facts.signals, "signal", "signals") + ", ") +
           counted(facts.dependencies, "dependency", "dependencies") + ", at most " +
           counted(facts.threadBlocks, "thread block", "thread blocks") + " a rank" +
           (facts.smallestDepth == 0
                ? ""
                : "; depth " + std::to_string(facts.smallestDepth) + " suffices");
  // The kind of error first, then where it applies: mode, place, message, code, and the witness a
  // line each.
  std::string text = nameOf(error->proof());
  if (error->mode)
    text += *error->mode == AliasMode::InPlace ? " (in place)" : " (out of place)";
  if (error->place)
    text += ", " + describePlace(*error->place);
  text += ": " + error->message + " [" + plan::nameOf(error->code) + "]";
  for (const Note &note : error->witness)
    text += "\n  " + note.text;
  return text;
}

} // namespace occl::plan
