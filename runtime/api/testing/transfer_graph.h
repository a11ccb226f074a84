// Random transfers between ranks, each made in an order of its own, and what must have come of
// them.
#pragma once

#include "runtime/api/occl_transfer.h"
#include "support/testing/seed.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace occl::communicator::testing {

using occl::numberFrom;
using occl::printedSeed;

/// The same on all ranks that say the same.
class TransferGraph {
public:
  /// `number` transfers between any two of the ranks, each with itself too, of 0 to `mostBytes`:
  /// half of them small, the others of any magnitude.
  TransferGraph(uint32_t numRanks, uint64_t number, uint64_t mostBytes, uint64_t seed);

  /// How many rank r takes part in; with itself counts twice.
  uint64_t countOf(uint32_t rank) const;
  /// Makes all calls of the rank in one group, in an order of its own which keeps that of each
  /// direction of a pair, receives into `memory`, and checks it. "", or what is wrong.
  std::string run(occlComm_t comm, uint32_t rank) const;
  /// The same in memory of occlMemAlloc, which ends with the communicator.
  std::string runInHeap(occlComm_t comm, uint32_t rank) const;
  /// The same between `source` and `memory`, of at least sourceBytes() and receivedBytes(rank):
  /// `source` has been filled by fillSource().
  std::string run(occlComm_t comm, uint32_t rank, const char *source, char *memory) const;
  uint64_t sourceBytes() const { return numSourceBytes; }
  uint64_t receivedBytes(uint32_t rank) const;
  void fillSource(char *source) const;

private:
  struct Edge {
    uint32_t source, destination;
    uint64_t count;
    occlDataType_t type;
    uint64_t bytes;
    uint64_t from; // in what all ranks send parts of
  };
  struct Step {
    bool isSend;
    const Edge *edge;
    char *to;
  };
  std::vector<Step> orderOf(uint32_t rank, char *memory) const;

  std::vector<Edge> edges;
  uint64_t seed, numSourceBytes;
};

} // namespace occl::communicator::testing
