#include "compiler/frontend/Elaborator.h"
#include "compiler/frontend/Provenance.h"

#include <algorithm>

namespace occl::frontend {

bool Elaborator::visitRequirements(const std::function<void(const RequirementInstance &)> &visit) {
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
  if (!collectContributions(requirement, output.count))
    return false;
  visit({&requirement, output, contributionBuffer});
  return true;
}

bool Elaborator::collectContributions(const Requirement &requirement, uint32_t count) {
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
    contributionBuffer.push_back(place);
    spendSteps(count, requirement.range);
    return stopped ? Flow::Stop : Flow::Normal;
  };
  Flow flow = Flow::Normal;
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
  expected.assign(count, {});
  for (const Place &place : contributionBuffer)
    for (uint32_t i = 0; i < count; ++i)
      expected[i] += contribution(place.rank, place.index + i);
  lastRequirement = &requirement;
  return true;
}

bool Elaborator::isNewRequirement(const Requirement &requirement) {
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
    if (!info.isStandard)
      recordRequirement(instance);
  });
}

void Elaborator::checkRequirement(const RequirementInstance &instance) {
  // The first few failures tell it all; the others are mostly the same.
  constexpr size_t kMaxFailures = 3;
  for (uint32_t i = 0; i < instance.output.count; ++i) {
    LocationId location = layout.first(instance.output) + i;
    auto fails = [&](const Memory &memory) {
      return memory.version(location) == kUnwritten || memory.content(location) != expected[i];
    };
    auto memory = std::find_if(memories.begin(), memories.end(), fails);
    if (memory == memories.end())
      continue;
    std::vector<Contribution> wanted;
    for (const Place &place : instance.contributions)
      wanted.push_back({place.rank, place.index + i});
    Provenance(layout, trace, memory->isInPlace())
        .report(location, std::move(wanted),
                {modeText(*memory, fails), algorithm.nameRange, instance.requirement->range,
                 trace.describe(context())},
                diagnostics);
    if (++failedRequirements >= kMaxFailures)
      stopped = true;
  }
}

void Elaborator::recordRequirement(const RequirementInstance &instance) {
  if (!spendSteps(instance.contributions.size(), instance.requirement->range))
    return;
  std::vector<int32_t> &out = info.requirements;
  auto push = [&](uint64_t number) { out.push_back(static_cast<int32_t>(number)); };
  push(instance.output.rank);
  push(instance.output.index);
  push(instance.output.count);
  push(instance.contributions.size());
  for (const Place &place : instance.contributions) {
    push(place.rank);
    push(place.index);
  }
}

} // namespace occl::frontend
