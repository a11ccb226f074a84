// Which partitions each thread block of a partitioned collective reads and makes: what PartGates
// says on the device, derived from the bound plan. No CUDA.
#pragma once

#include "runtime/cuda/tables/part_gates.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/partitioned/collective_buffers.h"

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// Of one rank. In place a thread block that stores to the output needs the partitions of the input
/// that lie there: the program makes them first.
struct GateTable {
  GateTable(const interpreter::Program &program, const partitioned::CollectiveBuffers &buffers);

  uint32_t numBlocks = 1; // one without instructions, if the rank has no thread block
  uint32_t atEnd = 0;
  std::vector<PartitionRange> ranges;
  std::vector<uint32_t> firstRead, firstMade; // numBlocks + 1 of each
  std::vector<device::OutputPartition> outputs;
};

/// Where the parts lie in one piece of memory, which begins at a multiple of 128; offsets in bytes.
struct GateLayout {
  uint64_t marked, outputs, gates, ranges, firstRead, firstMade, bytes;

  /// state: bytes of what comes before.
  GateLayout(uint64_t state, uint64_t inputPartitions, const GateTable &table);
};

} // namespace occl::cuda
