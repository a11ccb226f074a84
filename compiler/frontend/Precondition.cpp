#include "compiler/frontend/Elaborator.h"

namespace occl::frontend {

bool Elaborator::readPrecondition() {
  const std::vector<PreItem> &items = algorithm.collective->pres;
  if (items.empty())
    return true;
  isDefined.assign(layout.numLocations(), false);
  bool good = true;
  for (const PreItem &item : items)
    forEach(item.generators, [&] {
      for (const Expr *input : item.inputs) {
        Place place;
        good = good && evaluatePlace(*input, place) && spendSteps(place.count, input->range);
        LocationId first = good ? layout.first(place) : 0;
        for (LocationId location = first; good && location < first + place.count; ++location)
          isDefined[location] = true;
      }
      return good ? Flow::Normal : Flow::Stop;
    });
  return good && !stopped;
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
