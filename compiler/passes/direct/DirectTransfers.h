// Which transfers of a scheduled program become direct accesses, and the program in which they are.
#pragma once

#include "compiler/passes/direct/LinearOrder.h"

#include <cstdint>
#include <vector>

namespace occl::passes {

struct DirectOptions {
  /// Of each rank, the number of its group: its members access each other's memory.
  std::vector<uint32_t> groups;
  /// Whether a reduction may be divided so that 16-bit floats are rounded once more.
  bool reassociate = false;
};

/// The messages between ranks of one group that stay, by why.
struct KeptMessages {
  uint64_t all = 0;     // between ranks of one group, those that became accesses included
  uint64_t spoils = 0;  // an access would read or spoil another value, or wait for another rank's
  uint64_t mixes = 0;   // it would meet a connection in a step that cannot be divided
  uint64_t nowhere = 0; // what it carries is in no buffer at either end
  mlir::LocationAttr location; // where the first of these is sent

  uint64_t kept() const { return spoils + mixes + nowhere; }
};

/// Turns transfers within groups into loads from the sender's
/// buffer or stores to the receivers' buffers. `order` is a linear order of `program`; both are
/// replaced, and all dependencies are dropped: what must wait for what follows from the new order
/// and the memory that its steps access. False if no transfer is turned; then nothing has changed.
///
/// A transfer stays as it is if the change would order accesses differently, or make a write wait
/// for accesses by another rank (a load or a store must not cost more waiting than the message
/// did), or mix connections and peers' buffers in an instruction that cannot be split. `kept`, if
/// given, gets what stays.
bool useDirectTransfers(analysis::Program &program, std::vector<StepRef> &order,
                        const DirectOptions &options, KeptMessages *kept = nullptr);

} // namespace occl::passes
