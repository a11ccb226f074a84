#include "compiler/dialect/inst/Step.h"

namespace occl::inst {

using dialect::FlatForm;
using dialect::FlatReader;

/// kind, channel and index of each place.
static void flatten(const Places &places, std::vector<int64_t> &numbers) {
  for (Place place : places)
    numbers.insert(numbers.end(), {static_cast<int64_t>(place.kind), place.channel, place.index});
}

// For each step: the numbers of sources, destinations and dependencies; count, extent, thread
// block, group, final, location; then the sources, the destinations and the dependencies.
FlatForm flatten(const Steps &steps) {
  // Numbers of lists first, so that a reader knows how many follow.
  FlatForm flat;
  dialect::LocationNumbers locations(flat);
  for (const Step &step : steps) {
    const Instruction &instruction = step.instruction;
    flat.numbers.insert(flat.numbers.end(),
                        {static_cast<int64_t>(instruction.sources.size()),
                         static_cast<int64_t>(instruction.destinations.size()),
                         static_cast<int64_t>(step.dependencies.size()), instruction.count,
                         instruction.extent, instruction.threadBlock, instruction.group,
                         instruction.final, locations.of(step.location)});
    flatten(instruction.sources, flat.numbers);
    flatten(instruction.destinations, flat.numbers);
    flat.numbers.insert(flat.numbers.end(), step.dependencies.begin(), step.dependencies.end());
  }
  return flat;
}

static void readPlaces(FlatReader &reader, uint32_t number, Places &places) {
  // A wrong number of places stops at the end of the list.
  for (uint32_t i = 0; i < number && !reader.hasFailed(); ++i) {
    Place &place = places.emplace_back();
    place.kind =
        static_cast<PlaceKind>(reader.next<uint8_t>(static_cast<int64_t>(PlaceKind::Connection)));
    place.channel = reader.next<int16_t>();
    place.index = reader.next<uint32_t>();
  }
}

bool unflatten(const FlatForm &flat, Steps &steps) {
  // In the order of flatten().
  FlatReader reader(flat);
  while (!reader.isAtEnd()) {
    Step &step = steps.emplace_back();
    Instruction &instruction = step.instruction;
    // Sizes are bounded by what is left, so nothing is reserved for wrong numbers.
    const uint32_t sources = reader.nextSize(), destinations = reader.nextSize(),
                   dependencies = reader.nextSize();
    instruction.count = reader.next<uint32_t>();
    instruction.extent = reader.next<uint32_t>();
    instruction.threadBlock = reader.next<int32_t>();
    instruction.group = reader.next<int32_t>();
    instruction.final = reader.next<uint8_t>(1) != 0;
    step.location = reader.nextLocation();
    readPlaces(reader, sources, instruction.sources);
    readPlaces(reader, destinations, instruction.destinations);
    for (uint32_t i = 0; i < dependencies && !reader.hasFailed(); ++i)
      step.dependencies.push_back(reader.next<uint32_t>());
  }
  return !reader.hasFailed();
}

} // namespace occl::inst
