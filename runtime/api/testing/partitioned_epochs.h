// The partitioned part of a rank's life: sends and receives around a ring, an all-reduce and a
// broadcast, for some epochs.
#pragma once

#include "runtime/api/occl_partitioned.h"
#include "runtime/api/testing/harness.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// Lives longer than the communicator, whose requests have its buffers. For one thread.
class PartitionedEpochs {
public:
  explicit PartitionedEpochs(uint32_t numRanks);

  /// Makes all requests, on all ranks alike, starts, marks and waits for each epoch, and frees
  /// them. The first error, after which requests are left to the communicator.
  occlResult_t run(occlComm_t comm);
  /// Which rank received what nobody sent in an epoch that was well; "" if none.
  const std::string &wrong() const { return wrongData; }

private:
  enum Which { Send, Receive, Sum, Copy };

  occlResult_t make(occlComm_t comm);
  occlResult_t runEpoch(uint32_t epoch);
  occlResult_t mark() const;
  occlResult_t await() const;
  void fill(uint32_t epoch);
  void check(uint32_t epoch);

  uint32_t numRanks, rank = 0;
  PlanHandle sumPlan, copyPlan;
  std::array<occlPart_t, 4> parts{};                                     // by Which
  std::vector<int32_t> sent, received, summands, sums, original, copied; // of this rank
  std::string wrongData;
};

} // namespace occl::communicator::testing
