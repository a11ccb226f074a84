#include "plan/verify/checks/postcondition.h"

#include "plan/collectives/promise.h"

namespace occl::plan::verify {

namespace {

class PostconditionChecker {
public:
  PostconditionChecker(const Network &network, const Execution &execution, AliasMode mode,
                       const Keys &keys)
      : plan(network.plan), network(network), execution(execution), mode(mode), keys(keys),
        symbolic(network, mode, keys) {}

  Finding run() {
    if (Finding finding = symbolic.run(execution.order))
      return finding;
    if (std::optional<StandardCollective> collective = standardCollectiveOf(plan.collective))
      return checkStandard(*collective);
    return checkRequirements();
  }

private:
  Finding checkStandard(StandardCollective collective) {
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
      for (uint32_t chunk = 0; chunk < plan.ranks[rank].outputChunks; ++chunk) {
        std::optional<Goal> goal = goalOf(plan, collective, rank, chunk);
        // Chunks of ranks that get nothing are not promised, and may hold anything.
        if (!goal)
          continue;
        const Contribution one = {goal->rank, static_cast<uint32_t>(goal->index)};
        // Keys are secret and random: two different multisets of contributions have equal sums with
        // probability below 2^-60, so comparing sums replaces comparing sets.
        Value expected = goal->ofAllRanks ? sumOverRanks(one.chunk) : keys.of(one);
        if (isEqual(rank, chunk, expected))
          continue;
        // Only for the message the contributions are named.
        std::vector<Contribution> contributions;
        for (uint32_t r = 0; r < (goal->ofAllRanks ? plan.numRanks : 1); ++r)
          contributions.push_back(goal->ofAllRanks ? Contribution{r, one.chunk} : one);
        return explain(rank, chunk, contributions);
      }
    return {};
  }

  Finding checkRequirements() {
    std::vector<Contribution> contributions;
    for (const Requirement &requirement : plan.requirements)
      for (uint32_t i = 0; i < requirement.count; ++i) {
        // A requirement of several chunks is one for each, with all contributions moved along.
        contributions.clear();
        Value expected = {};
        for (Contribution contribution : plan.contributionsOf(requirement)) {
          contribution.chunk += i;
          contributions.push_back(contribution);
          accumulate(expected, keys.of(contribution));
        }
        if (!isEqual(requirement.rank, requirement.outputChunk + i, expected))
          return explain(requirement.rank, requirement.outputChunk + i, contributions);
      }
    return {};
  }

  /// The reduction of input chunk `chunk` of all ranks, computed once.
  const Value &sumOverRanks(uint32_t chunk) {
    if (chunk >= sums.size())
      sums.resize(chunk + 1);
    Value &sum = sums[chunk];
    for (uint32_t rank = 0; sum.isWritten == 0 && rank < plan.numRanks; ++rank)
      accumulate(sum, keys.of({rank, chunk}));
    sum.isWritten = 1;
    return sum;
  }

  Value valueAt(uint32_t rank, uint32_t chunk) const {
    return symbolic.valueAt(rank, symbolic.locations().of(rank, OperandKind::Output, chunk));
  }

  bool isEqual(uint32_t rank, uint32_t chunk, const Value &expected) const {
    Value value = valueAt(rank, chunk);
    return value.numContributions == expected.numContributions &&
           value.sums[0] == expected.sums[0] && value.sums[1] == expected.sums[1] &&
           (value.isFinal != 0) == (plan.average && expected.numContributions > 1);
  }

  VerifyError error(Code code, uint32_t rank, uint32_t chunk, const std::string &message) const {
    return {.code = code,
            .message = describeChunk(rank, OperandKind::Output, chunk) + ": " + message,
            .mode = mode,
            .path = "ranks[" + std::to_string(rank) + "].outputChunks"};
  }

  /// Finds out exactly what is wrong, by another execution that keeps a record.
  VerifyError explain(uint32_t rank, uint32_t chunk,
                      const std::vector<Contribution> &expected) const {
    // A location that was never written may still hold something: in place, an output chunk is
    // input at entry.
    Value value = valueAt(rank, chunk);
    if (value.numContributions == 0)
      return error(Code::NothingWritten, rank, chunk,
                   plan.collective + " promises a value, but nothing writes there");
    if (value.isWritten == 0)
      return error(Code::NothingWritten, rank, chunk,
                   "it still holds what input held there at entry");
    // The execution above kept only sums. Now that a chunk is known to be wrong, the same execution
    // is repeated with a record of every step: correct plans never pay for it.
    Symbolic recorder(network, mode, keys);
    std::vector<Symbolic::Step> steps;
    Finding none = recorder.run(execution.order, &steps);
    Explanation explanation =
        explainContributions(plan, recorder, steps, value.origin - 1, expected);
    if (explanation.text.empty()) { // a final value has several contributions
      explanation.code = Code::WrongFinal;
      explanation.text = "no reduction on its way is marked final";
    }
    VerifyError failure = error(explanation.code, rank, chunk, explanation.text);
    // The origin is 1 + the number of the result, and is not 0 here as the value was written.
    uint32_t writer = symbolic.instructionOf(value.origin - 1);
    failure.place = placeOf(plan, writer);
    failure.location = plan.instructions[writer].location;
    failure.witness = {noteAt(plan, writer, "written by ")};
    failure.witness.insert(failure.witness.end(), explanation.witness.begin(),
                           explanation.witness.end());
    return failure;
  }

  const Plan &plan;
  const Network &network;
  const Execution &execution;
  AliasMode mode;
  const Keys &keys;
  Symbolic symbolic;
  std::vector<Value> sums; // of all ranks, by input chunk
};

} // namespace

Finding checkPostcondition(const Network &network, const Execution &execution, AliasMode mode,
                           const Keys &keys) {
  return PostconditionChecker(network, execution, mode, keys).run();
}

} // namespace occl::plan::verify
