// A rank that runs collectives in several streams, each with buffers of its own, and compares every
// byte of their outputs on the device.
#pragma once

#include "plan/model/plan.h"
#include "test/gpu/harness/device_data.h"
#include "test/gpu/harness/device_job.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace occl::gpu_test {

/// A collective, as what its outputs must be.
struct CheckedCollective {
  uint64_t inputElements = 0;
  uint64_t count = 0; // as in Case
  Expected expected = Expected::Sum;
  Elements elements = Elements::Words;
};

/// What a case is then: its type is Int32 or Float32, of any collective that Expected knows.
CheckedCollective checkedOf(const Case &what, Expected expected);

/// All calls of one thread, with the rank's device current.
class CheckedRank {
public:
  /// Stream s has the calls of comms[s], or all have those of comms[0]. bytes: of each input and
  /// output; isRegistered: of occlMemAlloc.
  CheckedRank(const std::vector<occlComm_t> &comms, uint32_t rank, uint32_t numRanks,
              uint32_t numStreams, uint64_t bytes, bool isRegistered);
  ~CheckedRank();
  CheckedRank(const CheckedRank &) = delete;
  CheckedRank &operator=(const CheckedRank &) = delete;

  /// Makes the input, runs the collective and compares its output, as the stream's next work. The
  /// key is the same on all ranks. "" or what is wrong.
  std::string run(uint32_t stream, const Case &what, const CheckedCollective &checked,
                  uint64_t key);
  /// Waits for all streams, a minute at most; then "" or what was wrong in any of them.
  std::string finish();
  cudaStream_t stream(uint32_t number) const { return lanes[number].stream; }

private:
  struct Lane {
    occlComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    void *input = nullptr, *output = nullptr;
  };

  const uint32_t rank, numRanks;
  const bool isRegistered;
  std::vector<Lane> lanes;
  Differences *differences = nullptr; // by lane
};

} // namespace occl::gpu_test
