// A collective of one rank as its device has it: bound, its images uploaded, its arena blocks
// taken, and the other ranks told where they are.
#pragma once

#include "plan/plan.h"
#include "runtime/base/status.h"
#include "runtime/cuda/shape.h"
#include "runtime/daemon/collective.h"

#include <cstdint>
#include <memory>

namespace occl::cuda {

/// One slot of the rank: a registered collective. Immutable, but for what devices write.
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

  /// It is deregistered: once all ranks have said so its slot and memory may be another
  /// collective's. Without that they stay this one's until the communicator ends.
  Status retire();

private:
  explicit Registration(const ShapeContext &context) : Shape(context) {}
  Status findIdleRanks(const daemon::CollectiveSpec &spec);
  void layOut(const plan::Plan &plan);
  Status takeMemory();
  Status publish();

  bool hasSlot = false;
};

} // namespace occl::cuda
