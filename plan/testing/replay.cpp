#include "plan/testing/replay.h"

#include "plan/testing/orders.h"
#include "plan/testing/random_execution.h"

namespace occl::plan::testing {

namespace {

uint32_t indexOf(const Plan &plan, const Place &place) {
  const RankPlan &rank = plan.ranks[place.rank];
  return plan.threadBlocksOf(rank)[place.threadBlock].firstInstruction + place.instruction;
}

std::string replayRace(const Plan &plan, const VerifyError &error) {
  if (error.code != Code::Race)
    return "";
  const std::vector<Note> &accesses = error.witness;
  if (accesses.size() != 2 || !accesses[0].place || !accesses[1].place || !error.mode)
    return "the witness does not name two accesses";
  uint32_t first = indexOf(plan, *accesses[0].place), second = indexOf(plan, *accesses[1].place);
  bool inPlace = *error.mode == AliasMode::InPlace;
  return Orders(plan).isRace(first, second, inPlace) ? "" : "the two accesses do not race";
}

} // namespace

std::string replay(const Plan &plan, const VerifyError &error, std::mt19937 &random) {
  if (error.proof() == Proof::Shape || error.proof() == Proof::Lifetime)
    return "";
  if (error.proof() == Proof::Race)
    return replayRace(plan, error);
  bool inPlace = error.mode ? *error.mode == AliasMode::InPlace : plan.inPlace;
  std::string fault = executeRandomly(plan, inPlace, random);
  if (error.proof() == Proof::Deadlock)
    return fault == "deadlock" ? "" : "it does not deadlock, but: " + fault;
  if (fault.empty())
    return "an execution finds nothing wrong";
  if (error.proof() == Proof::Postcondition && fault == "deadlock")
    return "it deadlocks";
  return "";
}

std::string confirm(const Plan &plan, uint32_t rounds, std::mt19937 &random) {
  Orders orders(plan);
  for (bool inPlace : {false, true}) {
    if (!(inPlace ? plan.inPlace : plan.outOfPlace))
      continue;
    for (uint32_t round = 0; round < rounds; ++round)
      if (std::string fault = executeRandomly(plan, inPlace, random); !fault.empty())
        return fault;
    if (auto race = orders.findRace(inPlace))
      return "instructions " + std::to_string(race->first) + " and " +
             std::to_string(race->second) + " race";
  }
  return "";
}

} // namespace occl::plan::testing
