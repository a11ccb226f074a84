// A program that uses its buffers again as soon as a call has returned, well or not. A call that
// succeeds must have come with the right data, and what the program stores afterwards stays.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/api/testing/harness.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// A collective of int32 with buffers of one rank. Functions that return text return "" or what is
/// wrong.
class Exchange {
public:
  enum class Kind { BroadcastOfRank0, AllReduce };
  enum class Memory { Private, Shared }; // of the process, or of occlMemAlloc

  Exchange(uint64_t id, PlanHandle plan, Kind kind, uint64_t count, Memory memory);

  /// Its buffers, if it has any, are no longer looked at.
  void forget() { isReused = false; }
  /// Gets its buffers. They are the communicator's, if they are shared.
  occlResult_t enter(occlComm_t comm);
  /// What a rank has and gets differs from round to round.
  void fill(uint32_t round);
  /// Executes it in the communicator's sequence of calls.
  occlResult_t call();
  /// Starts it in the sequence of its id.
  occlResult_t start(occlRequest_t *request);
  occlResult_t wait(occlRequest_t request);
  /// The call has returned: looks at the output if that was well, and overwrites both buffers.
  std::string reuse(occlResult_t result);
  /// Whether anybody else has stored to the buffers since.
  std::string findForeign() const;

private:
  occlCall_t given() const;
  int32_t expected(uint64_t element) const;

  uint64_t id;
  PlanHandle plan;
  Kind kind;
  uint64_t count;
  Memory memory;
  occlComm_t comm = nullptr;
  uint32_t rank = 0, numRanks = 0, round = 0;
  bool isReused = false;
  std::vector<int32_t> own[2];
  int32_t *input = nullptr, *output = nullptr;
};

/// By reference over several ranks, from private buffers and from shared ones; plans that access
/// buffers themselves; lines.
std::vector<Exchange> exchangesOfAllKinds(uint32_t numRanks);

/// Rounds of all, one after the other and in flight together, until one fails: then `result` is its
/// error. All buffers that were in use have been reused.
std::string exchange(occlComm_t comm, std::vector<Exchange> &all, uint32_t rounds,
                     occlResult_t &result);

} // namespace occl::communicator::testing
