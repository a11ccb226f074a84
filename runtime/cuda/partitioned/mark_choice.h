// By what the marks of a stream are carried out: docs/decisions/gpu/partitioned-copies.md.
// Host code alone: knows no device.
#pragma once

#include "plan/cover.h"
#include "runtime/partitioned/shape.h"

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// Kernel: marks them, and stores what they complete if the receiver has started. CopyEngine: one
/// copy of all, and a kernel behind it that says so. Nobody: the first of them is in a copy of this
/// epoch already, so that nothing may be stored again.
enum class MarkBy { Kernel, CopyEngine, Nobody };

/// Bytes of one call's marks from which on they are copied: below a kernel is as fast.
inline constexpr uint64_t kCopiedBytes = uint64_t{1} << 20;

/// What the host knows of the marks of a send. A copy that is in a stream is carried out whatever
/// happens, so it has to be certain before that the receiver has started the epoch and cannot end
/// it without these partitions: the host has seen the one, and has put all marks into streams.
///
/// Thread safety: none.
class MarkChoice {
public:
  explicit MarkChoice(const partitioned::Shape &shape);

  /// A start of the program's is in a stream.
  void started();
  /// Kernels of the program, or replays of graphs, may mark or start from here on: nothing is
  /// copied any more.
  void loseSight() { seesAll = false; }
  /// Marks that are put into a stream now; not empty. seen: the last epoch that the receiver is
  /// known to have started.
  MarkBy choose(plan::Range partitions, uint64_t seen);
  /// The copy could not be put there.
  void takeBack(plan::Range partitions);

private:
  bool mayCopy() const { return shape.bytes() >= kCopiedBytes; }
  bool areWholeMessages(plan::Range partitions) const;
  /// Whether any is set.
  static bool isAny(const std::vector<bool> &flags, plan::Range partitions);

  const partitioned::Shape shape;
  bool seesAll = true;
  uint64_t epoch = 0; // as many starts as there were
  std::vector<bool> marked,
      copied; // in this epoch; empty without one, and if the buffer is too small
};

} // namespace occl::cuda
