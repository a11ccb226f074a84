// Copies of inputs: their memory, from the arena or from CUDA, and the launches that fill them.
#include "runtime/cuda/scaling/scaled_inputs.h"

#include "runtime/cuda/device/cuda_calls.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

/// For a device that others keep busy.
constexpr auto kPatience = std::chrono::milliseconds(20000);

/// Of larger inputs, memory is no larger than they are.
constexpr uint64_t kMostRoundedUp = 64 << 20;

} // namespace

ScaledInputs::~ScaledInputs() {
  if (!own)
    return;
  OnDevice on(device());
  cudaStreamDestroy(own); // which waits for nothing
}

char *ScaledInputs::take(uint64_t bytes) {
  const auto offset = space.lend(bytes);
  return offset ? memory.onDevice() + *offset : nullptr;
}

void ScaledInputs::giveBack(const char *taken) {
  space.takeBack(static_cast<uint64_t>(taken - memory.onDevice()));
}

Status ScaledInputs::scaleIn(cudaStream_t stream, const Scaling &scaling) const {
  return toStatus(static_cast<cudaError_t>(launchScaling(scaling, mostBlocks, stream)),
                  "copying an input");
}

/// Who waits for it should not wait for kernels that have not begun.
Status ScaledInputs::startStream() {
  if (own)
    return {};
  int least = 0, greatest = 0;
  Status status =
      toStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  return status.ok() ? toStatus(cudaStreamCreateWithPriority(&own, cudaStreamNonBlocking, greatest),
                                "making a CUDA stream")
                     : status;
}

Status ScaledInputs::scaleNow(const Scaling &given) {
  OnDevice on(device());
  std::lock_guard lock(scaling);
  Status status = startStream();
  if (status.ok())
    status = scaleIn(own, given);
  if (!status.ok())
    return status;
  // As many streams may wait as there are connections.
  const cudaError_t state = pollDevice([&] { return cudaStreamQuery(own); }, kPatience);
  if (state == cudaErrorNotReady)
    return {StatusCode::Timeout, "copying an input: the device does not get round to it; do as "
                                 "many streams wait as CUDA_DEVICE_MAX_CONNECTIONS?"};
  return toStatus(state, "copying an input");
}

/// Calls run one after the other, so any piece that is large enough will do.
StatusOr<char *> OrderedScaledInputs::memoryFor(const Call &call, uint64_t bytes) {
  for (Piece &piece : pieces)
    if (piece.bytes >= bytes && !(call.isDirect && piece.own)) {
      piece.lastCall = call.number;
      piece.isCaptured |= call.isCaptured;
      return piece.begin;
    }
  // No piece fits: pieces of calls that are over go first.
  if (Status given = pieces.empty() ? Status() : giveBackUnused(call); !given.ok())
    return given;
  auto made = makePiece(bytes, call.isDirect);
  if (!made.ok())
    return made.status();
  // The piece is free again once this call is over, unless a graph has it.
  made->lastCall = call.number;
  made->isCaptured = call.isCaptured;
  pieces.push_back(*made);
  return made->begin;
}

/// What CUDA has given stays: to give it back may take as long as anything on the device does.
Status OrderedScaledInputs::giveBackUnused(const Call &call) {
  const auto finished = call.numFinished();
  if (!finished.ok())
    return finished.status();
  std::erase_if(pieces, [&](const Piece &piece) {
    const bool isFree = !piece.own && !piece.isCaptured && piece.lastCall < *finished;
    if (isFree)
      inputs.giveBack(piece.begin);
    return isFree;
  });
  return {};
}

/// What is left of the arena first: that takes no time, and no call of CUDA that may wait. Of
/// growing inputs not each is to have memory of its own.
StatusOr<OrderedScaledInputs::Piece> OrderedScaledInputs::makePiece(uint64_t bytes, bool isDirect) {
  // Rounded up at first, so that a slightly larger input fits later; else exactly as many bytes.
  for (uint64_t size : {std::max(bytes, std::bit_ceil(std::min(bytes, kMostRoundedUp))), bytes})
    if (char *taken = inputs.take(size))
      return Piece{taken, size, nullptr, 0, false};
  // Other memory of the device will do, unless other ranks access it.
  void *begin = nullptr;
  if (isDirect || cudaMalloc(&begin, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return Status(StatusCode::Again, "no " + std::to_string(bytes) +
                                         " bytes of device memory are free for a copy of an "
                                         "input; free memory of occlMemAlloc, or set heapBytes "
                                         "higher");
  }
  return Piece{static_cast<char *>(begin), bytes,
               std::make_shared<DeviceAllocation>(inputs.device(), static_cast<char *>(begin)), 0,
               false};
}

void OrderedScaledInputs::abandon() {
  for (const Piece &piece : pieces)
    if (piece.own)
      piece.own->isLeft = true;
}

} // namespace occl::cuda
