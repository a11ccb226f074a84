// Random partitioned transfers between ranks, with epochs, and what must have come of them.
#pragma once

#include "runtime/api/occl_partitioned.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// The same on all ranks that say the same.
class PartitionedGraph {
public:
  /// `number` requests between any two of the ranks, each with itself too, of up to `mostBytes`,
  /// with partitions whose numbers need not divide each other.
  PartitionedGraph(uint32_t numRanks, uint64_t number, uint64_t mostBytes, uint64_t seed);

  /// Memory of the rank's buffers; malloc and free by default.
  struct Memory {
    void *(*allocate)(void *context, uint64_t bytes);
    void *context;
  };
  /// That of occlMemAlloc, which all ranks map.
  static Memory ofHeap(occlComm_t comm);
  /// Makes the rank's requests, and lets so many epochs of each pass: started in an order of the
  /// rank's own, marked by some threads in any order, asked for and waited for in any. Each
  /// partition is checked when it has arrived, all when the epoch has ended. "", or what is wrong.
  std::string run(occlComm_t comm, uint32_t rank, uint64_t epochs, const Memory *memory) const;

private:
  struct Edge {
    uint32_t source, destination;
    int64_t tag;
    int64_t sent, received; // partitions
    uint64_t elements;
    uint64_t perMessage;
    occlDataType_t type;
    uint64_t elementBytes;
  };
  struct Side;
  class Rank;

  std::vector<Edge> edges;
  uint64_t seed;
};

} // namespace occl::communicator::testing
