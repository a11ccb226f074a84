#include "runtime/cuda/kernels/in_stream.h"

#include "runtime/cuda/kernels/in_stream_kernels.h"

namespace occl::cuda {

namespace {

/// Else the rank only attends.
bool hasBlocks(const DeviceCollective &collective) {
  return collective.images != nullptr || collective.straight.images != nullptr;
}

uint32_t threadsOf(const DeviceCollective &collective) {
  if (!hasBlocks(collective))
    return 32;
  const StraightImages &straight = collective.straight;
  return collective.numBlocks * (straight.images != nullptr ? straight.numThreads + 32 : kThreads);
}

const InStreamKernel &kernelFor(const DeviceCollective &collective) {
  if (!hasBlocks(collective))
    return kAttendKernel;
  if (collective.straight.images != nullptr)
    return collective.isFloatSum ? kFloatSumStraightKernel : kAnyStraightKernel;
  if (collective.hasLines)
    return collective.isFloatSum ? kFloatSumLinesKernel : kAnyLinesKernel;
  return collective.isFloatSum ? kFloatSumKernel : kAnyKernel;
}

/// In a graph only a kernel can be overlapped with.
cudaError_t followsKernel(cudaStream_t stream, bool &follows) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t *nodes = nullptr;
  const cudaGraphEdgeData *edges = nullptr;
  size_t number = 0;
  cudaError_t error =
      cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &number);
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  if (error == cudaSuccess && number == 1)
    error = cudaGraphNodeGetType(nodes[0], &type);
  follows = type == cudaGraphNodeTypeKernel;
  return error;
}

} // namespace

int launchInStream(const InStreamArguments &arguments, uint32_t mostEarlyThreads, void *stream) {
  Launch launch;
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.isEarly = threadsOf(arguments.collective) <= mostEarlyThreads;
  if (launch.isEarly && arguments.number == kAnyNumber)
    if (cudaError_t error = followsKernel(launch.stream, launch.isEarly); error != cudaSuccess)
      return error;
  return kernelFor(arguments.collective).launch(arguments, launch);
}

int loadInStream() {
  for (const InStreamKernel *kernel :
       {&kFloatSumKernel, &kFloatSumLinesKernel, &kFloatSumStraightKernel, &kAnyKernel,
        &kAnyLinesKernel, &kAnyStraightKernel, &kAttendKernel})
    if (int error = kernel->load(); error != cudaSuccess)
      return error;
  return cudaSuccess;
}

} // namespace occl::cuda
