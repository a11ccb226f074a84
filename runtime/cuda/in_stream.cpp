#include "runtime/cuda/in_stream.h"

#include "runtime/cuda/in_stream_kernels.h"

namespace occl::cuda {

namespace {

/// Threads of a kernel that may take its place on the device before it is its turn. A stream then
/// holds room for two kernels while the first waits for other ranks, and collectives in conflicting
/// order on several streams need room for all. Of kThreads on each of 114 multiprocessors, which a
/// device surely has room for, two such kernels take an eighth, and by default more streams than
/// eight share connections anyway.
constexpr uint32_t kMostEarlyThreads = kThreads * 114 / 16;

uint32_t threadsOf(const DeviceCollective &collective) {
  const StraightImages &straight = collective.straight;
  return collective.numBlocks * (straight.images != nullptr ? straight.numThreads + 32 : kThreads);
}

const InStreamKernel &kernelFor(const DeviceCollective &collective) {
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

int launchInStream(const InStreamArguments &arguments, void *stream) {
  Launch launch;
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.isEarly = threadsOf(arguments.collective) <= kMostEarlyThreads;
  if (launch.isEarly && arguments.number == kAnyNumber)
    if (cudaError_t error = followsKernel(launch.stream, launch.isEarly); error != cudaSuccess)
      return error;
  return kernelFor(arguments.collective).launch(arguments, launch);
}

int loadInStream() {
  for (const InStreamKernel *kernel :
       {&kFloatSumKernel, &kFloatSumLinesKernel, &kFloatSumStraightKernel, &kAnyKernel,
        &kAnyLinesKernel, &kAnyStraightKernel})
    if (int error = kernel->load(); error != cudaSuccess)
      return error;
  return cudaSuccess;
}

} // namespace occl::cuda
