// What is right in a program that was elaborated, and yet hardly meant.
#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace occl::frontend {

void Elaborator::warn() {
  warnOfSizes();
  if (!info.isStandard && info.requirements.empty())
    warnOfNothing(); // that each of its moves is needed by nobody says no more
  else if (versionSizes.size() <= 1)
    warnOfMoves(); // else what this version does not need may be for another one
}

void Elaborator::warnOfNothing() {
  if (trace.numEvents() == 0)
    return; // as it is with few ranks, say
  const CollectiveDecl &collective = *algorithm.collective;
  SourceRange place = collective.posts.empty() ? collective.nameRange : collective.posts[0].range;
  error(DiagnosticCode::AsksForNothing, place,
        "the postcondition asks for nothing of " + std::to_string(info.numRanks) +
            (info.numRanks == 1 ? " rank" : " ranks") +
            ", so that a plan without instructions meets it")
      .note(algorithm.collectiveRange, "in the collective of this algorithm");
}

void Elaborator::warnOfSizes() {
  if (version != 0)
    return; // the first version speaks for all
  // By size, to find gaps between one version's end and the next one's begin.
  std::vector<size_t> order(versionSizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return versionSizes[a].first < versionSizes[b].first; });
  for (size_t i = 1; i < order.size(); ++i) {
    uint64_t end = versionSizes[order[i - 1]].last + 1, begin = versionSizes[order[i]].first;
    if (end == begin)
      continue;
    error(DiagnosticCode::SizesWithoutVersion, algorithm.versions[order[i]].range,
          "no version is for " + std::to_string(end) + " to " + std::to_string(begin - 1) +
              " bytes")
        .note(algorithm.versions[order[i - 1]].range, "the version for the sizes before");
  }
}

void Elaborator::findDead(const Memory &memory, std::vector<bool> &isDead) const {
  // Backwards through all that was moved: what is needed in the end is live, what is written is
  // needed only if it is live, and its sources are live then.
  auto cellOf = [&](LocationId location) {
    return memory.isInPlace() ? layout.inPlaceAlias(location) : location;
  };
  std::vector<bool> isLive(layout.numLocations());
  for (LocationId location = 0; location < isRequired.size(); ++location)
    if (isRequired[location])
      isLive[cellOf(location)] = true;
  std::vector<uint32_t> needed; // of the chunks that an event writes
  for (size_t i = trace.numEvents(); i-- > 0;) {
    const Event &event = trace.event(i);
    // All chunks of an event are looked at before any is changed: its sources may be its own
    // destinations.
    needed.clear();
    for (uint32_t offset = 0; offset < event.count; ++offset)
      if (isLive[cellOf(event.destination + offset)])
        needed.push_back(offset);
    // The sources are read before the destination is written, hence in this order.
    for (uint32_t offset : needed)
      isLive[cellOf(event.destination + offset)] = false;
    for (LocationId source : trace.sourcesOf(event))
      for (uint32_t offset : needed)
        isLive[cellOf(source + offset)] = true;
    if (!needed.empty())
      isDead[i] = false;
  }
}

void Elaborator::warnOfMoves() {
  // Dead in every mode that is claimed, since both share the program.
  std::vector<bool> isDead(trace.numEvents(), true);
  for (const Memory &memory : memories)
    findDead(memory, isDead);
  if (std::find(isDead.begin(), isDead.end(), true) == isDead.end())
    return;
  // A statement that was needed once has its place.
  std::map<const Expr *, size_t> firstDead;
  for (size_t i = 0; i < isDead.size(); ++i)
    if (isDead[i])
      firstDead.try_emplace(trace.event(i).expr, i);
  for (size_t i = 0; i < isDead.size(); ++i)
    if (!isDead[i])
      firstDead.erase(trace.event(i).expr);
  std::vector<size_t> events;
  for (const auto &[expr, event] : firstDead)
    events.push_back(event);
  std::sort(events.begin(), events.end());
  for (size_t i : events) {
    const Event &event = trace.event(i);
    diagnostics.error(DiagnosticCode::UnusedMove, event.expr->range,
                      "nobody needs what is written here, to " +
                          layout.describe(layout.placeOf(event.destination)) +
                          trace.describe(event.context));
  }
}

} // namespace occl::frontend
