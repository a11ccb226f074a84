#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>
#include <numeric>

namespace occl::frontend {
namespace {

/// The first of the locations that are said to hold the same.
LocationId findFirst(std::vector<LocationId> &equal, LocationId location) {
  while (equal[location] != location)
    location = equal[location] = equal[equal[location]];
  return location;
}

} // namespace

bool Elaborator::readPrecondition() {
  // Items that only say what is equal leave all inputs defined; one that names inputs defines these
  // and no others.
  const std::vector<PreItem> &items = algorithm.collective->pres;
  auto namesInputs = [](const PreItem &item) {
    return std::any_of(item.inputs.begin(), item.inputs.end(),
                       [](const DefinedInput &defined) { return !defined.equal; });
  };
  if (std::any_of(items.begin(), items.end(), namesInputs))
    isDefined.assign(layout.numLocations(), false);
  bool good = true;
  // Each item may have loops.
  for (const PreItem &item : items)
    forEach(item.generators, [&] {
      for (const DefinedInput &defined : item.inputs)
        good = good && readDefinedInput(defined);
      return good ? Flow::Normal : Flow::Stop;
    });
  // Classes of equal inputs point to their first member at once.
  for (LocationId location = 0; location < equalInput.size(); ++location)
    equalInput[location] = findFirst(equalInput, location);
  return good && !stopped;
}

bool Elaborator::readDefinedInput(const DefinedInput &defined) {
  // One place, or two that are equal: `input[0][0] == input[1][0]`.
  Place places[2];
  size_t numPlaces = 0;
  for (const Expr *input : {defined.input, defined.equal})
    if (input && (!evaluatePlace(*input, places[numPlaces++]) ||
                  !spendSteps(places[numPlaces - 1].count, input->range)))
      return false;
  // Both sides of an equation are defined.
  for (size_t i = 0; i < numPlaces && !isDefined.empty(); ++i)
    std::fill_n(isDefined.begin() + layout.first(places[i]), places[i].count, true);
  if (numPlaces == 1)
    return true;
  if (places[0].count != places[1].count) {
    error(DiagnosticCode::CountMismatch, join(defined.input->range, defined.equal->range),
          "the left side has " + std::to_string(places[0].count) + " chunks, the right side " +
              std::to_string(places[1].count));
    return false;
  }
  // Union-find over locations, with the smallest member as representative: the same classes
  // whatever the order of the items.
  if (equalInput.empty()) {
    equalInput.resize(layout.numLocations());
    std::iota(equalInput.begin(), equalInput.end(), 0);
  }
  for (uint32_t i = 0; i < places[0].count; ++i) {
    LocationId a = findFirst(equalInput, layout.first(places[0]) + i);
    LocationId b = findFirst(equalInput, layout.first(places[1]) + i);
    equalInput[std::max(a, b)] = std::min(a, b);
  }
  return true;
}

Contribution Elaborator::sameAs(const Contribution &input) const {
  if (equalInput.empty())
    return input;
  Place place =
      layout.placeOf(equalInput[layout.first({BufferKind::Input, 0, input.rank, input.chunk})]);
  return {place.rank, place.index};
}

std::optional<LocationId> Elaborator::findUndefined(const Place &place) const {
  if (isDefined.empty() || place.buffer != BufferKind::Input)
    return std::nullopt;
  LocationId first = layout.first(place);
  for (LocationId location = first; location < first + place.count; ++location)
    if (!isDefined[location])
      return location;
  return std::nullopt;
}

bool Elaborator::checkDefined(const Place &place, const Expr &expr) {
  std::optional<LocationId> location = findUndefined(place);
  // In place, the algorithm may have written there as output.
  if (!location || (memories.size() == 1 && memories[0].version(*location) != kUnwritten))
    return true;
  error(DiagnosticCode::UndefinedInput, expr.range,
        layout.describe(layout.placeOf(*location)) +
            " holds no data at entry: the precondition of '" + info.collective +
            "' does not name it")
      .note(algorithm.collective->pres[0].range, "the precondition");
  return false;
}

} // namespace occl::frontend
