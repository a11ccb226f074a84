// How long steps take, as far as those who choose among schedules need to know: in any one unit.
#pragma once

#include "compiler/dialect/inst/Instruction.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::analysis {

/// What a message costs on its way.
struct WayWeights {
  /// Until what was sent can be received.
  uint32_t latency = 0;
  /// For each chunk, if that is longer than what the thread block does with it.
  uint32_t wire = 0;

  bool operator==(const WayWeights &) const = default;
};

/// The way from one rank to another.
struct RankWay {
  uint32_t from = 0, to = 0;
  WayWeights weights;

  bool operator==(const RankWay &) const = default;
};

/// What is not said of a machine is as the cost model has it for GPUs at a switch, in units of one
/// chunk read or written, for chunks of one tile (compiler/driver/Weights.h, a test compares).
struct StepWeights {
  /// Of an instruction, whatever it moves.
  uint32_t overhead = 3;
  /// Of a thread block, for each chunk of own memory and of messages.
  uint32_t read = 1, write = 1, receive = 1, send = 1;
  /// Whether each receiver fetches a message, which its sender writes once; or else the sender
  /// stores a copy for each.
  bool fetched = true;
  /// Between ranks that `ways` does not have.
  WayWeights usual = {7, 0};
  /// Ascending by the two ranks, each pair once.
  std::vector<RankWay> ways;

  /// As the options of passes have them: eight numbers in the order above, then four for each way.
  /// Nothing if the numbers are not of this form.
  std::vector<uint32_t> numbers() const;
  static std::optional<StepWeights> of(llvm::ArrayRef<uint32_t> numbers);

  const WayWeights &between(uint32_t from, uint32_t to) const;

  /// What a thread block does for an instruction, but for the overhead, if each message has one
  /// receiver.
  uint64_t workOf(const inst::Instruction &instruction) const;

  bool operator==(const StepWeights &) const = default;
};

/// Into how many tiles a runtime cuts chunks that are worth much work on their schedule.
inline constexpr uint32_t kTypicalTiles = 8;

} // namespace occl::analysis
