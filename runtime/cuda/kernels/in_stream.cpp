// Chooses and launches the kernel of a call: by its folds, its protocol, and whether it has thread
// blocks.
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

const InStreamKernels &kernelsFor(Folds folds) {
  switch (folds) {
  case Folds::FloatSum:
    return kFloatSumKernels;
  case Folds::Bfloat16Sum:
    return kBfloat16SumKernels;
  case Folds::Any:
    break;
  }
  return kAnyKernels;
}

const InStreamKernel &kernelFor(const DeviceCollective &collective) {
  // Without thread blocks the rank only takes part in the order of calls.
  if (!hasBlocks(collective))
    return kAttendKernel;
  const InStreamKernels &kernels = kernelsFor(collective.folds);
  if (collective.straight.images != nullptr)
    return kernels.straight;
  return collective.hasLines ? kernels.lines : kernels.simple;
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

int launchInStream(const InStreamArguments &arguments, uint32_t mostEarlyThreads, void *stream,
                   bool isCaptured) {
  Launch launch;
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.isEarly = threadsOf(arguments.collective) <= mostEarlyThreads;
  // In a graph the node before the kernel decides whether it can start early.
  if (launch.isEarly && isCaptured)
    if (cudaError_t error = followsKernel(launch.stream, launch.isEarly); error != cudaSuccess)
      return error;
  return kernelFor(arguments.collective).launch(arguments, launch);
}

int loadInStream() {
  // Each kernel is loaded here, so that no launch has to wait for kernels that run.
  for (const InStreamKernels *kernels : {&kFloatSumKernels, &kBfloat16SumKernels, &kAnyKernels})
    for (const InStreamKernel *kernel : {&kernels->simple, &kernels->lines, &kernels->straight})
      if (int error = kernel->load(); error != cudaSuccess)
        return error;
  return kAttendKernel.load();
}

} // namespace occl::cuda
