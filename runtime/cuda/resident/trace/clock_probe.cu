// A kernel of one thread that answers each word of the host with the device's clock.
#include "runtime/cuda/resident/trace/clock_probe.h"

#include "runtime/base/system_words.cuh"

namespace occl::cuda::resident {

namespace {

__global__ void answer(ClockProbe *probe) {
  for (uint32_t round = 0; round < ClockProbe::kRounds; ++round) {
    const uint64_t begin = deviceClock();
    // A host that has stopped asking must not keep the device.
    while (loadWord(&probe->asked) <= round)
      if (deviceClock() - begin > ClockProbe::kPatienceNs)
        return;
    storeWord(&probe->answers[round], deviceClock());
  }
}

} // namespace

int loadClockProbe() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, answer);
}

int launchClockProbe(ClockProbe *probe, void *stream) {
  answer<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(probe);
  return cudaGetLastError();
}

} // namespace occl::cuda::resident
