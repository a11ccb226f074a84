#include "compiler/frontend/elaborate/Elaborator.h"
#include "compiler/frontend/memory/Provenance.h"
#include "plan/model/limits.h"

#include <algorithm>

namespace occl::frontend {

bool Elaborator::visitRequirements(const std::function<void(const RequirementInstance &)> &visit) {
  // Postconditions are declarations with loops of their own: they are executed in the collective's
  // frame, and each requirement is handed out as it comes.
  frame = collectiveFrame;
  Flow flow = Flow::Normal;
  for (const PostItem &post : algorithm.collective->posts) {
    flow = forEach(post.generators, [&] {
      for (const Requirement &requirement : post.requirements)
        if (!visitRequirement(requirement, visit))
          return Flow::Stop;
      return stopped ? Flow::Stop : Flow::Normal;
    });
    if (flow == Flow::Stop)
      break;
  }
  frame = 0;
  return flow != Flow::Stop;
}

bool Elaborator::visitRequirement(const Requirement &requirement,
                                  const std::function<void(const RequirementInstance &)> &visit) {
  // The left side is a place of the output; each of its chunks may be named once.
  Place output;
  if (!evaluatePlace(*requirement.output, output))
    return false;
  LocationId first = layout.first(output);
  for (LocationId location = first; location < first + output.count; ++location) {
    if (isRequired[location]) {
      error(DiagnosticCode::RepeatedRequirement, requirement.range,
            "the postcondition speaks twice of " + layout.describe(layout.placeOf(location)));
      return false;
    }
    isRequired[location] = true;
  }
  // The right side: which inputs, for `count` chunks.
  if (!collectContributions(requirement, output.count))
    return false;
  visit({&requirement, output, contributionBuffer});
  return true;
}

bool Elaborator::collectContributions(const Requirement &requirement, uint32_t count) {
  // One of each chunk of 1,024 ranks with 1,024 chunks.
  constexpr size_t kMaxContributions = 1u << 20;
  // Many outputs hold the same: what depends on the same values of variables is not computed again.
  const Expr &value = *requirement.value;
  bool isNew = isNewRequirement(requirement);
  if (!isNew && expected.size() == count)
    return true;
  lastRequirement = nullptr;
  contributionBuffer.clear();
  auto push = [&](const Expr &source) {
    Place place;
    if (!evaluatePlace(source, place))
      return Flow::Stop;
    if (place.count != count) {
      error(DiagnosticCode::CountMismatch, requirement.range,
            "the left side has " + std::to_string(count) + " chunks, the right side " +
                std::to_string(place.count));
      return Flow::Stop;
    }
    if (std::optional<LocationId> undefined = findUndefined(place)) {
      error(DiagnosticCode::UnmetRequirement, source.range,
            "the postcondition needs " + layout.describe(layout.placeOf(*undefined)) +
                ", which holds no data at entry")
          .note(algorithm.collective->pres[0].range, "the precondition does not name it");
      return Flow::Stop;
    }
    if (contributionBuffer.size() == kMaxContributions) {
      error(DiagnosticCode::BudgetSpent, source.range,
            "a reduction of a postcondition has at most " + std::to_string(kMaxContributions) +
                " operands");
      return Flow::Stop;
    }
    contributionBuffer.push_back(place);
    spendSteps(count, requirement.range);
    return stopped ? Flow::Stop : Flow::Normal;
  };
  Flow flow = Flow::Normal;
  // A single place, or a reduction over places, by a loop or one by one.
  if (value.kind != ExprKind::Reduce)
    flow = push(value);
  else if (!value.generators.list.empty())
    flow = forEach(value.generators, [&] { return push(*value.operands[0]); });
  else
    for (size_t i = 0; i < value.operands.size() && flow == Flow::Normal; ++i)
      flow = push(*value.operands[i]);
  if (flow == Flow::Stop)
    return false;
  if (contributionBuffer.empty()) {
    error(DiagnosticCode::EmptyReduction, value.range, "a reduction needs at least one operand");
    return false;
  }
  // The sum of contributions, in the same form as memory keeps its content: so a check is a
  // comparison of two numbers.
  expected.assign(count, {});
  for (const Place &place : contributionBuffer)
    for (uint32_t i = 0; i < count; ++i)
      expected[i] += contribution(place.rank, place.index + i);
  lastRequirement = &requirement;
  return true;
}

bool Elaborator::isNewRequirement(const Requirement &requirement) {
  // Which variables the right side depends on is found once for each requirement.
  if (freeSlotsOf != &requirement) {
    freeSlotsOf = &requirement;
    freeSlots = freeVariables(*requirement.value);
  }
  std::vector<int64_t> key;
  std::vector<ListRef> lists; // held, so that no other list gets the same address
  for (uint32_t index : freeSlots) {
    key.push_back(slot(index).scalar);
    lists.push_back(slot(index).list);
  }
  bool isNew = lastRequirement != &requirement || key != lastKey || lists != lastLists;
  lastKey = std::move(key);
  lastLists = std::move(lists);
  return isNew;
}

void Elaborator::checkPostcondition() {
  isRequired.assign(layout.numLocations(), false);
  visitRequirements([&](const RequirementInstance &instance) {
    checkRequirement(instance);
    if (!info.isStandard && wrongOutputs == 0)
      recordRequirement(instance);
  });
  if (wrongOutputs > 1 && !stopped)
    diagnostics.noteLast({}, describeWrongOutputs());
}

/// "5 of 8 outputs are wrong, on ranks 0, 1 and 2": what a few errors do not tell.
std::string Elaborator::describeWrongOutputs() const {
  // The first errors show examples; this says how many there are, and where.
  constexpr size_t kMaxNamed = 8;
  size_t required = static_cast<size_t>(std::count(isRequired.begin(), isRequired.end(), true));
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < isRankWrong.size(); ++rank)
    if (isRankWrong[rank])
      ranks.push_back(rank);
  std::string text = std::to_string(wrongOutputs) + " of the " + std::to_string(required) +
                     " chunks that the postcondition asks for are wrong, on ";
  // All, many, or a list.
  if (ranks.size() == info.numRanks && ranks.size() > 1)
    return text + "all ranks";
  if (ranks.size() > kMaxNamed)
    return text + std::to_string(ranks.size()) + " of " + std::to_string(info.numRanks) + " ranks";
  text += ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

void Elaborator::checkRequirement(const RequirementInstance &instance) {
  // The first few failures tell it all; the others are mostly the same.
  constexpr size_t kMaxFailures = 3;
  for (uint32_t i = 0; i < instance.output.count; ++i) {
    LocationId location = layout.first(instance.output) + i;
    // In every mode that is claimed, the output has to hold exactly what is expected.
    auto isOther = [&](const Memory &memory) {
      return memory.version(location) == kUnwritten || memory.content(location) != expected[i];
    };
    if (std::none_of(memories.begin(), memories.end(), isOther))
      continue;
    // The others are counted only, where that is quick.
    if (wrongOutputs >= kMaxFailures) {
      stopped = stopped || !equalInput.empty();
      ++wrongOutputs;
      isRankWrong[instance.output.rank] = true;
      continue;
    }
    // Something differs. Inputs that the precondition calls equal may stand for each other, which
    // the sums do not know: so this looks at the history.
    std::vector<Contribution> wanted;
    for (const Place &place : instance.contributions)
      wanted.push_back(sameAs({place.rank, place.index + i}));
    auto fails = [&](const Memory &memory) {
      return isOther(memory) && !holdsSame(memory, location, wanted);
    };
    auto memory = std::find_if(memories.begin(), memories.end(), fails);
    if (memory == memories.end() || stopped)
      continue;
    ++wrongOutputs;
    isRankWrong.resize(info.numRanks);
    isRankWrong[instance.output.rank] = true;
    std::string mode = modeText(*memory, fails);
    Diagnostic &wrong = Provenance(layout, trace, memory->isInPlace(), equalInput)
                            .report(location, wanted,
                                    {mode, algorithm.nameRange, instance.requirement->range,
                                     trace.describe(context())},
                                    diagnostics);
    offerModes(mode, wrong);
  }
}

bool Elaborator::holdsSame(const Memory &memory, LocationId location,
                           const std::vector<Contribution> &wanted) {
  // Only preconditions with equal inputs can make different sums right.
  if (equalInput.empty() || memory.version(location) == kUnwritten ||
      memory.content(location).count != wanted.size())
    return false;
  std::vector<Contribution> actual = contentsOf(memory, location), expectedHere = wanted;
  for (Contribution &contribution : actual)
    contribution = sameAs(contribution);
  std::sort(actual.begin(), actual.end());
  std::sort(expectedHere.begin(), expectedHere.end());
  return actual == expectedHere;
}

std::vector<Contribution> Elaborator::contentsOf(const Memory &memory, LocationId location) {
  // A sum of one contribution is that contribution's number; others need the history.
  const ContributionSum &sum = memory.content(location);
  if (sum.count == 1)
    return {soleContribution(sum)};
  Provenance history(layout, trace, memory.isInPlace());
  std::vector<Share> shares = history.contentsOf(location);
  if (!spendSteps(history.isCut() ? maxSteps + 1 : history.work(), algorithm.nameRange))
    return {};
  std::vector<Contribution> contents;
  for (const Share &share : shares)
    contents.insert(contents.end(), share.times, share.contribution);
  return contents;
}

void Elaborator::recordRequirement(const RequirementInstance &instance) {
  if (!spendSteps(instance.contributions.size(), instance.requirement->range))
    return;
  // Of inputs that hold the same, the plan is to give the one that the program uses: a promise that
  // needs no precondition.
  bool isChosen = !equalInput.empty() && !options.promiseOnly;
  if (isChosen && diagnostics.hasErrors())
    return;
  std::vector<Contribution> contributions;
  for (const Place &place : instance.contributions)
    contributions.push_back({place.rank, place.index});
  if (!isChosen)
    return appendRequirement(instance.output, contributions);
  Place output = instance.output;
  output.count = 1;
  for (; output.index < instance.output.index + instance.output.count; ++output.index)
    appendRequirement(output, contentsOf(memories.front(), layout.first(output)));
}

void Elaborator::appendRequirement(const Place &output,
                                   std::span<const Contribution> contributions) {
  // Neighbouring outputs with neighbouring contributions become one requirement of several chunks:
  // plans of large collectives would otherwise be mostly requirements.
  constexpr size_t kHeader = 4;
  std::vector<int32_t> &out = info.requirements;
  auto isNext = [&](size_t at, uint64_t value) {
    return static_cast<uint64_t>(out[at]) + static_cast<uint64_t>(out[lastRecorded + 2]) == value;
  };
  // Same rank, next chunk; and each contribution is the next one, too.
  bool continues = out.size() == lastRecorded + kHeader + 2 * contributions.size() &&
                   out[lastRecorded] == static_cast<int32_t>(output.rank) &&
                   isNext(lastRecorded + 1, output.index);
  for (size_t i = 0, at = lastRecorded + kHeader; i < contributions.size() && continues;
       ++i, at += 2)
    continues = out[at] == static_cast<int32_t>(contributions[i].rank) &&
                isNext(at + 1, contributions[i].chunk);
  // It continues the last one.
  if (continues) {
    out[lastRecorded + 2] += static_cast<int32_t>(output.count);
    return;
  }
  // Contributions are what limits a plan's size.
  numRecorded += contributions.size();
  if (numRecorded > plan::limits::kMaxTotalContributions) {
    error(DiagnosticCode::BadSize, algorithm.collective->nameRange,
          "the postcondition names more than " +
              std::to_string(plan::limits::kMaxTotalContributions) +
              " contributions, as many as a plan can say; ranges of chunks count once")
        .note(algorithm.collectiveRange, "in the collective of this algorithm");
    stopped = true;
    return;
  }
  // Rank, chunk, count and number, then the contributions.
  lastRecorded = out.size();
  auto push = [&](uint64_t number) { out.push_back(static_cast<int32_t>(number)); };
  push(output.rank);
  push(output.index);
  push(output.count);
  push(contributions.size());
  for (const Contribution &contribution : contributions) {
    push(contribution.rank);
    push(contribution.chunk);
  }
}

} // namespace occl::frontend
