#include "plan/verifier.h"

#include "plan/verify/lifetimes.h"
#include "plan/verify/postcondition.h"
#include "plan/verify/races.h"
#include "plan/verify/shape.h"
#include "plan/verify/witnesses.h"

#include <algorithm>
#include <exception>

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

Finding checkModes(const verify::Network &network, const verify::Execution &execution,
                   uint64_t &searches) {
  verify::Keys keys;
  verify::KnownOrders known;
  if (Finding finding = verify::checkWitnesses(network, known))
    return finding;
  for (AliasMode mode : {AliasMode::OutOfPlace, AliasMode::InPlace}) {
    if (!(mode == AliasMode::OutOfPlace ? network.plan.outOfPlace : network.plan.inPlace))
      continue;
    if (Finding finding = verify::checkRaces(network, execution, known, mode, searches))
      return finding;
    if (Finding finding = verify::checkPostcondition(network, execution, mode, keys))
      return finding;
  }
  return {};
}

VerifyFacts factsOf(const verify::Network &network, const VerifyOptions &options,
                    uint64_t searches) {
  const Plan &plan = network.plan;
  VerifyFacts facts;
  facts.outOfPlace = plan.outOfPlace;
  facts.inPlace = plan.inPlace;
  facts.result = plan.hasPostcondition;
  if (options.findSmallestDepth)
    facts.smallestDepth = verify::smallestDepth(network, plan.depth);
  facts.instructions = plan.instructions.size();
  facts.messages = 0;
  for (uint32_t c = 0; c < plan.connections.size(); ++c)
    (plan.connections[c].isCounter ? facts.signals : facts.messages) += network.numMessages(c);
  facts.connections = plan.connections.size();
  facts.dependencies = plan.dependencies.size();
  facts.searchedOrders = searches;
  for (const RankPlan &rank : plan.ranks)
    facts.threadBlocks = std::max(facts.threadBlocks, rank.numThreadBlocks);
  return facts;
}

VerifyResult prove(const Plan &plan, const VerifyOptions &options) {
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
  uint64_t searches = 0;
  if (Finding finding = checkModes(network, execution, searches))
    return {finding, {}};
  return {{}, factsOf(network, options, searches)};
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
