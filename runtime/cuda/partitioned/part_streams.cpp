// CudaParts: epochs and marks as work of streams.
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/partitioned/cuda_parts.h"
#include "runtime/cuda/watch/stream_first_use.h"

#include <cuda_runtime.h>

#include <mutex>
#include <string>

namespace occl::cuda {

using partitioned::Party;
using partitioned::Shape;

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

Status launched(int error, const char *what) {
  return toStatus(static_cast<cudaError_t>(error), what);
}

} // namespace

Status PairPart::start(void *stream) { return owner.start(*this, stream); }
Status PairPart::mark(plan::Range range, void *stream) { return owner.mark(*this, range, stream); }
Status PairPart::prepare(void *stream) { return owner.prepare(*this, stream); }
Status PairPart::wait(void *stream) { return owner.wait(*this, stream); }
Status PairPart::release() { return owner.release(*this); }

void *PairPart::state() {
  CudaParts::loseSight(*this);
  return onDevice;
}

void CudaParts::loseSight(PairPart &part) {
  std::lock_guard lock(part.choosing);
  part.choice.loseSight();
}

PartWait CudaParts::waitOf(const PairPart &part) const {
  return {part.onDevice, part.party.peer, static_cast<uint32_t>(part.party.serial),
          watch.bound(kPartPlace, static_cast<uint64_t>(timeout.count()) * 1'000'000)};
}

StatusOr<bool> CudaParts::isCapturing(void *stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &capture),
                           "looking at the stream");
  return status.ok() ? StatusOr<bool>(capture != cudaStreamCaptureStatusNone) : status;
}

/// launch(isCaptured) puts it there.
template <class Launch>
Status CudaParts::launchIn(const PairPart &part, void *stream, bool waits, const Launch &launch) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  // Its other side may have come meanwhile.
  if (Status tended = tend(part); !tended.ok())
    return tended;
  auto *const into = static_cast<cudaStream_t>(stream);
  const auto isCaptured = isCapturing(into);
  if (!isCaptured.ok())
    return isCaptured.status();
  const auto launchNow = [&] { return launch(*isCaptured); };
  // A captured launch runs at replays, and does not hold its stream.
  if (*isCaptured)
    return launchNow();
  unsigned long long number = 0;
  Status status = toStatus(cudaStreamGetId(into, &number), "asking which stream it is");
  if (status.ok())
    status = useStream(into, number);
  // A wait leaves a connection for what it waits for.
  if (status.ok() && waits)
    status = watch.checkConnections(false);
  if (!status.ok())
    return status;
  return waits ? launchHeld(held, memory.device(), into, launchNow) : launchNow();
}

Status CudaParts::start(PairPart &part, void *stream) {
  return launchIn(part, stream, false, [&](bool isCaptured) {
    if (isCaptured)
      loseSight(part);
    Status status = launched(launchPartStart(part.onDevice, stream),
                             "launching the start of a partitioned request");
    if (status.ok() && !isCaptured) {
      std::lock_guard lock(part.choosing);
      part.choice.started();
    }
    return status;
  });
}

Status CudaParts::mark(PairPart &part, plan::Range range, void *stream) {
  const Party &party = part.party;
  if (!party.isSend)
    return invalid("a " + describe(part) + " has no partitions to be marked");
  if (range.begin >= range.end || range.end > party.shape.partitions)
    return invalid(describe(part) + ": there are no partitions " + std::to_string(range.begin) +
                   " to " + std::to_string(range.end - 1) + " of " +
                   std::to_string(party.shape.partitions));
  return launchIn(part, stream, false,
                  [&](bool isCaptured) { return launchMarks(part, range, stream, isCaptured); });
}

Status CudaParts::launchMarks(PairPart &part, plan::Range range, void *stream, bool isCaptured) {
  const Shape &shape = part.party.shape;
  // Between devices a copy in the default stream waits for all that both of them do.
  const bool mayNotCopy = isCaptured || !stream || stream == cudaStreamLegacy;
  if (mayNotCopy)
    loseSight(part);
  const uint64_t seen = loadShared(&part.peer->foundStarted, std::memory_order_acquire);
  MarkBy by = MarkBy::Kernel;
  if (!mayNotCopy) { // a captured one is not of this epoch alone
    std::lock_guard lock(part.choosing);
    by = part.choice.choose(range, seen);
  }
  const char *const what = "launching marks of a partitioned send";
  if (by == MarkBy::CopyEngine)
    return copyMarks(part, range, seen, stream);
  if (by == MarkBy::Nobody)
    return launched(launchRefusedMark(part.onDevice, range.begin, stream), what);
  // The messages that the marks can complete decide how many thread blocks store them.
  const uint64_t messages = shape.messageOf(range.end - 1) - shape.messageOf(range.begin) + 1;
  return launched(launchPartMarks(part.onDevice, range.begin, range.end - 1,
                                  messages * part.cut.unitsOfMessage, stream),
                  what);
}

/// The receiver has started the epoch, and nobody else stores these: a copy engine does, whatever
/// happens meanwhile.
Status CudaParts::copyMarks(PairPart &part, plan::Range range, uint64_t epoch, void *stream) {
  const Shape &shape = part.party.shape;
  const uint64_t partition = shape.count * sizeOf(shape.type), at = range.begin * partition;
  Status status = toStatus(cudaMemcpyAsync(part.peer->buffer + at, part.buffer + at,
                                           (range.end - range.begin) * partition, cudaMemcpyDefault,
                                           static_cast<cudaStream_t>(stream)),
                           "copying partitions to their receiver");
  if (!status.ok()) {
    std::lock_guard lock(part.choosing);
    part.choice.takeBack(range);
    return status;
  }
  status = launched(launchCopiedMarks(part.onDevice, epoch, range.begin, range.end - 1, stream),
                    "launching marks of a partitioned send");
  // The copy cannot be taken back, and must not be followed by another one.
  return status.ok() ? status : failed(status);
}

Status CudaParts::prepare(PairPart &part, void *stream) {
  if (!part.party.isSend) // data come whatever this side does
    return fabric.failed() ? fabric.failure() : Status();
  return launchIn(part, stream, true, [&](bool) {
    return launched(launchPartPrepare(waitOf(part), &part.peer->foundStarted, stream),
                    "launching the preparation of a partitioned send");
  });
}

Status CudaParts::wait(PairPart &part, void *stream) {
  bool isCaptured = false;
  Status status = launchIn(part, stream, true, [&](bool captured) {
    isCaptured = captured;
    return launched(part.party.isSend ? launchSendWait(waitOf(part), part.cut.units(), stream)
                                      : launchReceiveWait(waitOf(part), stream),
                    "launching the wait of a partitioned request");
  });
  if (!status.ok())
    return status;
  part.waits.fetch_add(1, std::memory_order_relaxed);
  if (isCaptured)
    part.hasCapturedWait.store(true, std::memory_order_relaxed);
  return status;
}

} // namespace occl::cuda
