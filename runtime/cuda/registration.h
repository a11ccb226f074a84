// A collective of one rank as its device has it: bound, its images uploaded, its arena blocks
// taken, and the other ranks told where they are.
#pragma once

#include "plan/plan.h"
#include "runtime/base/status.h"
#include "runtime/cuda/shape.h"
#include "runtime/daemon/collective.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace occl::cuda {

/// One slot of the rank: a registered collective, or one captured call of it. Immutable, but for
/// staging() and what devices write.
///
/// Its memory is given back once all ranks have retired the slot: until then slower ones may store
/// signals and credits of invocations that are over here. A rank without thread blocks takes part
/// in agreeing on the slot and in nothing else.
class Registration : public Shape {
public:
  /// InvalidArgument if the plan does not suit devices, Mismatch, Again if there is no memory or no
  /// slot, SystemError.
  static StatusOr<std::unique_ptr<Registration>>
  make(const ShapeContext &context, const daemon::CollectiveSpec &spec, uint32_t instance);
  ~Registration();

  /// This rank has no thread block: there is nothing to launch.
  bool isIdle() const { return device.numBlocks == 0; }

  /// A word of its kernels' own, zero at first.
  uint64_t *relay() const { return device.ordinals + device.numBlocks; }

  /// Input and output of this rank's arena, for buffers that the other ranks cannot access. Again
  /// if there is no memory. One thread at a time.
  StatusOr<std::array<char *, 2>> staging();
  /// It is deregistered: once all ranks have said so its slot and memory may be another
  /// collective's. Without that they stay this one's until the communicator ends.
  Status retire();
  /// Invocations that all thread blocks have finished; without thread blocks, all there are.
  StatusOr<uint64_t> finished() const;
  /// Of a captured call: whether a replay has begun and not ended.
  StatusOr<bool> isReplayed() const;

private:
  explicit Registration(const ShapeContext &context) : Shape(context) {}
  Status findIdleRanks(const daemon::CollectiveSpec &spec);
  void layOut(const plan::Plan &plan);
  Status takeMemory();
  Status publish();
  StatusOr<std::vector<uint64_t>> readOrdinals() const;

  bool hasSlot = false;
  std::optional<std::array<char *, 2>> staged;
};

} // namespace occl::cuda
