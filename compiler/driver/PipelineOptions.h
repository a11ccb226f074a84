// What the passes can be told: PipelineOptions.def as a struct, and that as text.
#pragma once

#include "compiler/analysis/StepWeights.h"
#include "plan/model/limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::driver {

/// PipelineOptions.def says what each is.
struct PipelineOptions {
#define OCCL_PASS_SWITCH(member, name, usual, help) bool member = usual;
#define OCCL_PASS_EITHER(member, name, effective, yes, no) std::optional<bool> member;
#define OCCL_PASS_NUMBER(member, name, usual, least, most, help) uint32_t member = usual;
#define OCCL_PASS_WORD(member, name, usual, words, help) std::string member = usual;
#define OCCL_PASS_LIST(member, name, help) std::vector<uint32_t> member = {};
#include "compiler/driver/PipelineOptions.def"

  /// What schedules are compared by; nothing: as on GPUs at a switch.
  std::optional<analysis::StepWeights> weights = {};
  /// Prints the time of each pass to standard error.
  bool printTiming = false;
  /// Runs the dialects' verifiers after each pass.
  bool verifyEach = false;

  /// Whether local instructions of neighbouring chunks are joined, and whether they are distributed
  /// over thread blocks like messages.
  bool joinsLocal() const { return aggregateLocal.value_or(!areInstancesSpread()); }
  bool spreadsLocal() const { return spreadLocal.value_or(areInstancesSpread()); }

private:
  /// Without a number, a rank has a thread block for each channel.
  bool areInstancesSpread() const {
    return instances > 1 && (maxThreadBlocks == 0 ? !shareChannels : maxThreadBlocks > 1);
  }
};

/// Those that differ from the usual ones, as the pipeline `occl-default` takes them:
/// "multicast=false max-thread-blocks=2". Neither how passes are watched (printTiming, verifyEach)
/// nor what is not for passes (OCCL_PLAN_SWITCH).
std::string textOf(const PipelineOptions &options);

/// Everything besides the source that decides what the plan is: the plan has a hash of it.
std::string hashedText(const PipelineOptions &options);

} // namespace occl::driver
