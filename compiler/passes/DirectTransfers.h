// Which transfers of a scheduled program become direct accesses, and the program in which they are.
#pragma once

#include "compiler/passes/LinearOrder.h"

#include <vector>

namespace occl::passes {

struct DirectOptions {
  /// Of each rank, the number of its group: its members access each other's memory.
  std::vector<uint32_t> groups;
  /// Whether a fold may be divided so that 16-bit floats are rounded once more.
  bool reassociate = false;
};

/// Turns transfers within groups into loads from the sender's
/// buffer or stores to the receivers' buffers. `order` is a linear order of `program`; both are
/// replaced, and all dependencies are dropped: what must wait for what follows from the new order
/// and the memory that its steps access. False if no transfer is turned; then nothing has changed.
///
/// A transfer stays as it is if the change would order accesses differently, or make a write wait
/// for accesses by another rank (a load or a store must not cost more waiting than the message
/// did), or mix connections and peers' buffers in an instruction that cannot be split.
bool useDirectTransfers(analysis::Program &program, std::vector<StepRef> &order,
                        const DirectOptions &options);

} // namespace occl::passes
