#include "examples/partitioned/loss.h"

#include "examples/partitioned/check.h"
#include "examples/partitioned/loss_gradient.cuh"
#include "runtime/api/occl_device.cuh"

namespace occl::examples {

namespace {

constexpr uint32_t kThreads = 1024; // few blocks keep a multiprocessor busy

__global__ void __launch_bounds__(kThreads)
    computeAndMark(occlPartDevice_t handle, const float *logits, const float *labels,
                   float *gradient, uint64_t count, uint64_t partitions, uint64_t perPartition,
                   uint32_t parts) {
  device::Part part(handle);
  const uint64_t ofPart = partitions / parts;
  for (uint64_t i = blockIdx.x; i < partitions; i += gridDim.x) {
    const uint64_t p = i % parts * ofPart + i / parts;
    const uint64_t begin = min(p * perPartition, count), end = min(begin + perPartition, count);
    lossGradient(logits, labels, gradient, begin, end);
    ready(device::Block(), part, p); // from here on it is summed
  }
}

} // namespace

LossStep::LossStep(occlComm_t comm, const LossShape &shape, const float *logits,
                   const float *labels, float *gradient, float *sum)
    : shape(shape), logits(logits), labels(labels), gradient(gradient) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.rounds = shape.rounds;
  check(occlPallReduceInit(gradient, shape.partitions, sum, 1, shape.count, occlFloat32, occlSum,
                           comm, &config, &part),
        "occlPallReduceInit");
  check(occlPdevice(part, &handle), "occlPdevice");
  // A first launch loads the kernel, which waits for kernels that run; in an epoch the library's
  // does. So it is launched once now, without partitions.
  computeAndMark<<<1, kThreads, 0, cudaStreamPerThread>>>(handle, logits, labels, gradient, 0, 0, 0,
                                                          1);
  check(cudaGetLastError(), "computeAndMark");
  check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

void LossStep::enqueue(cudaStream_t stream) {
  const auto partitions = static_cast<uint64_t>(shape.partitions);
  const uint64_t perPartition = (shape.count + partitions - 1) / partitions;
  if (perPartition % 4 != 0 || partitions % shape.parts != 0)
    throw std::runtime_error("LossStep: partitions are of a multiple of 4 elements, and a multiple "
                             "of the parts");
  check(occlPstartOn(part, stream), "occlPstartOn");
  computeAndMark<<<shape.blocks, kThreads, 0, stream>>>(
      handle, logits, labels, gradient, shape.count, partitions, perPartition, shape.parts);
  check(cudaGetLastError(), "computeAndMark");
  check(occlPwaitOn(part, stream), "occlPwaitOn"); // what follows finds the sum
}

LossStep::~LossStep() { occlPfree(part); }

} // namespace occl::examples
