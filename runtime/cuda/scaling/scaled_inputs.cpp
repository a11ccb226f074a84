// Copies of inputs: the launches that fill them.
#include "runtime/cuda/scaling/scaled_inputs.h"

#include "runtime/cuda/device/cuda_calls.h"

#include <chrono>
#include <mutex>

namespace occl::cuda {

namespace {

/// For a device that others keep busy.
constexpr auto kPatience = std::chrono::milliseconds(20000);

} // namespace

ScaledInputs::~ScaledInputs() {
  if (!own)
    return;
  OnDevice on(device());
  cudaStreamDestroy(own); // which waits for nothing
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

} // namespace occl::cuda
