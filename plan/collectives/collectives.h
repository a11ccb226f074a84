// The standard collectives (collectives.def): how large the buffers are, how they lie in place, and
// what each element of the output is at the end. Independent of anything that a compiler says. No
// function allocates or keeps anything; any thread may call any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace occl::plan {

enum class StandardCollective : uint8_t {
#define OCCL_COLLECTIVE(enumerator, ...) enumerator,
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE
};

enum class BufferSize : uint8_t { Part, Whole };
enum class Holder : uint8_t { All, Root };
enum class Result : uint8_t { Copied, Reduced };
enum class Promise : uint8_t { Named, Listed };

/// A row of the list; its columns are explained there.
struct CollectiveDefinition {
  const char *name;
  BufferSize input;
  Holder inputOf;
  BufferSize output;
  Holder outputOf;
  Result result;
  Promise promise;
};

/// By enumerator.
inline constexpr CollectiveDefinition kStandardCollectives[] = {
#define OCCL_COLLECTIVE(enumerator, name, input, inputOf, output, outputOf, result, promise)       \
  {name,           BufferSize::input, Holder::inputOf, BufferSize::output, Holder::outputOf,       \
   Result::result, Promise::promise},
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE
};
inline constexpr uint32_t kNumStandardCollectives =
    sizeof(kStandardCollectives) / sizeof(kStandardCollectives[0]);

constexpr const CollectiveDefinition &definitionOf(StandardCollective collective) {
  return kStandardCollectives[static_cast<uint32_t>(collective)];
}

/// As plan files call it: "allreduce", ...
constexpr const char *nameOf(StandardCollective collective) {
  return definitionOf(collective).name;
}

/// The collective of that name.
std::optional<StandardCollective> collectiveOfName(std::string_view name);

/// The collective that a plan promises by saying that name as its collective; nothing for one whose
/// plans list what they promise.
std::optional<StandardCollective> standardCollectiveOf(std::string_view name);

bool hasRoot(StandardCollective collective);
/// Whether the root alone has an output; else, of those that have a root, it alone has an input.
constexpr bool endsAtRoot(StandardCollective collective) {
  return definitionOf(collective).outputOf == Holder::Root;
}
bool isReduction(StandardCollective collective);
/// Whether a buffer has one part for each rank.
bool hasManyParts(StandardCollective collective);

/// What one collective is done with. The size of a part is in any unit, chunks, elements or bytes;
/// then all sizes and places are.
struct Parts {
  uint32_t numRanks = 1;
  uint32_t root = 0; // not looked at if the collective has none
  uint64_t part = 0;
};

/// Whether the collective needs the rank's input (output). Other ranks may have one or none.
bool needsInput(StandardCollective collective, const Parts &parts, uint32_t rank);
bool needsOutput(StandardCollective collective, const Parts &parts, uint32_t rank);

/// Of a rank that has one.
uint64_t inputSize(StandardCollective collective, const Parts &parts);
uint64_t outputSize(StandardCollective collective, const Parts &parts);

/// In place: where a rank's input begins, from the begin of its output; negative where the output
/// lies in the input. The smaller buffer is the rank's own part of the larger one.
int64_t inPlaceOffset(StandardCollective collective, const Parts &parts, uint32_t rank);

/// What an element (or chunk, or byte) of an output must be at the end: the reduction of one of
/// every rank's input, or one of one rank's input.
struct Goal {
  bool ofAllRanks = false;
  uint32_t rank = 0; // unless ofAllRanks
  uint64_t index = 0;
};

/// The goal of `index` of rank `rank`'s output, which is below outputSize(); nothing if the
/// collective promises nothing there. Expects parts that are not empty.
std::optional<Goal> goalOf(StandardCollective collective, const Parts &parts, uint32_t rank,
                           uint64_t index);

} // namespace occl::plan
