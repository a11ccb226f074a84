// The tables of a rank's straight thread blocks as its device has them. Host code.
#pragma once

#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/straight_tables.h"

#include <memory_resource>
#include <vector>

namespace occl::cuda {

struct StraightTablesOnDevice {
  /// None unless all blocks of the program are straight.
  std::pmr::vector<interpreter::StraightTables> blocks;
  StraightImages layout; // `images` is not set

  uint64_t bytes() const { return blocks.size() * layout.stride; }
  /// So many bytes; what lies between tables stays as it is.
  void writeTo(char *memory) const;
};

/// The program was bound with BindRequest::lineStepBytes of kMaxStraightStepBytes. The tables are
/// of `memory`, which outlives them.
StraightTablesOnDevice
makeStraightImages(const interpreter::Program &program,
                   std::pmr::memory_resource *memory = std::pmr::get_default_resource());

} // namespace occl::cuda
