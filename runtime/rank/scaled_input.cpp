// The part of admission that scales a rank's input before anybody reads it: pre-multiplied sums,
// and averages of floats. The invocation reads a copy and never the user's buffer, so each element
// is scaled once, however often its plan, references or peers read it, in place too. Likewise it
// reads a copy as it is, if it is in place and its plan is valid out of place only.
#include "runtime/rank/admission.h"

#include "runtime/base/data_type.h"
#include "runtime/exec/reduce/fold_host.h"

#include <cstring>
#include <memory>
#include <utility>

namespace occl::daemon {

namespace {

interpreter::Scale scaleOf(const Collective &shape, const Submission &submission) {
  return {submission.factor, shape.inputDivisor};
}

/// Has the elements of the submission's input, scaled if they are to be, from now on.
void fill(const ScaledInput &scaled, const Collective &shape, const Submission &submission) {
  const interpreter::Scale scale = scaleOf(shape, submission);
  if (!scale.isNone())
    interpreter::scaleElements(shape.spec.type, scale, reinterpret_cast<char *>(scaled.data),
                               static_cast<const char *>(submission.input),
                               scaled.bytes / sizeOf(shape.spec.type));
  else if (scaled.bytes != 0)
    std::memcpy(scaled.data, submission.input, scaled.bytes);
}

} // namespace

bool Admission::readsCopy(const Collective &shape, const Submission &submission) {
  return !scaleOf(shape, submission).isNone() ||
         shape.aliasing.needsCopy(submission.input, submission.output);
}

/// What is refused is refused before the work is done: also what has no record.
Status Admission::checkScaled(IdState &id, const Collective &shape,
                              const Submission &submission) const {
  if (Status buffers = checkBuffers(shape, submission); !buffers.ok())
    return buffers;
  if (submission.factor && !shape.mayHaveFactor)
    return {StatusCode::InvalidArgument,
            "collective " + shape.describe(submission.id) +
                (shape.spec.plan->outOfPlace
                     ? ": it reduces nothing, so a scalar has no meaning; give it none"
                     : ": a scalar needs a plan that is valid out of place")};
  const OpenInvocation *holder = id.unreclaimed[id.nextOrdinal % transport::AnnounceCell::kRecords];
  if (holder && !canReclaim(*holder))
    return again(noRecord(id));
  return checkRing(id);
}

/// Room for the input. In the heap where peers access it there, or did so in the user's buffer.
StatusOr<ScaledInput> Admission::takeScaled(IdState &id, const Collective &shape,
                                            const Submission &submission) {
  // Copies of invocations that are over go back first.
  for (OpenInvocation *earlier : id.unreclaimed)
    giveBackIfFinished(earlier);
  ScaledInput scaled;
  scaled.bytes = shape.binding->inputBytes();
  if (scaled.bytes == 0)
    return scaled;
  transport::SharedHeap &heap = core.fabric->heap();
  if (!core.fabric->sharesAddresses() && isShared(submission.input, scaled.bytes))
    scaled.data = static_cast<std::byte *>(heap.allocate(scaled.bytes));
  // Only the heap will do for peers that access the copy directly.
  if (!scaled.data && shape.direct.exists && !core.fabric->sharesAddresses()) {
    for (OpenInvocation *any = oldest; any; any = any->next)
      giveBackIfFinished(any);
    scaled.data = static_cast<std::byte *>(heap.allocate(scaled.bytes));
  }
  scaled.isInHeap = scaled.data != nullptr;
  if (!scaled.data && shape.direct.exists && !core.fabric->sharesAddresses()) {
    Status none = nothingFree(std::to_string(scaled.bytes) +
                                  " bytes of the heap, for a copy of the input of collective " +
                                  shape.describe(submission.id),
                              "", "Free memory of occlMemAlloc, or set heapBytes higher");
    // A call that waits for room would wait for its caller to free some.
    return submission.isOwn ? Status(StatusCode::SystemError, none.message()) : none;
  }
  if (!scaled.data)
    scaled.data = workspaces.acquire(scaled.bytes);
  if (!scaled.data)
    return Status(StatusCode::SystemError, "collective " + shape.describe(submission.id) +
                                               ": no memory for " + std::to_string(scaled.bytes) +
                                               " bytes of a copy of its input");
  return scaled;
}

void Admission::giveBackIfFinished(OpenInvocation *invocation) {
  if (invocation && invocation->finished.load(std::memory_order_acquire))
    giveBack(invocation->scaled);
}

void Admission::giveBack(ScaledInput &scaled) {
  const ScaledInput given = std::exchange(scaled, {});
  if (!given.data)
    return;
  if (given.isInHeap)
    core.fabric->heap().release(given.data);
  else
    workspaces.release(given.data, given.bytes);
}

/// The lock is not held while the elements are copied. The shape is referred to meanwhile, so it
/// stays where it is; the sequence may be another object afterwards.
StatusOr<Admitted> Admission::submitScaled(std::unique_lock<LightMutex> &lock, Collective &shape,
                                           const Submission &submission) {
  IdState &id = sequenceOf(submission.id);
  if (Status checked = checkScaled(id, shape, submission); !checked.ok())
    return checked;
  auto taken = takeScaled(id, shape, submission);
  if (!taken.ok())
    return taken.status();
  // Given back unless an invocation keeps it.
  const auto giveItBack = [this](ScaledInput *refused) { giveBack(*refused); };
  std::unique_ptr<ScaledInput, decltype(giveItBack)> scaled(&*taken, giveItBack);
  // The count keeps the shape while the lock is free.
  ++shape.unreclaimed;
  lock.unlock();
  if (submission.partitions)
    submission.partitions->readCopy(reinterpret_cast<char *>(scaled->data),
                                    scaleOf(shape, submission));
  else
    fill(*scaled, shape, submission);
  lock.lock();
  --shape.unreclaimed;
  Submission changed = submission;
  changed.input = scaled->data;
  auto admitted = submit(sequenceOf(submission.id), shape, changed);
  if (admitted.ok()) // it may be over, and stays until it is reclaimed
    admitted->invocation->scaled = *scaled.release();
  return admitted;
}

/// For the lane: into the memory of an earlier invocation, which is small; where. Null: not for the
/// lane.
const void *Admission::scaleForLane(OpenInvocation &last, const Submission &submission) {
  const Collective &shape = *last.collective;
  if (submission.factor && !shape.mayHaveFactor)
    return nullptr;
  // The memory stays with the invocation for the next call in the lane.
  if (!last.scaled.data) {
    const uint64_t bytes = shape.binding->inputBytes();
    last.scaled = {workspaces.acquire(bytes), bytes, false};
  }
  if (last.scaled.data)
    fill(last.scaled, shape, submission);
  return last.scaled.data;
}

} // namespace occl::daemon
