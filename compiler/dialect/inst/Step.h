// What a rank of an inst.program does, as plain data: the property of its op, and what the passes
// work on.
#pragma once

#include "compiler/dialect/FlatForm.h"
#include "compiler/dialect/inst/Instruction.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace occl::inst {

/// An instruction of a rank.
struct Step {
  Instruction instruction;
  mlir::LocationAttr location; // not null in IR
  /// Earlier steps of the rank, by position, of other thread blocks, that it waits for; ascending.
  /// Empty before `inst-synchronize`.
  llvm::SmallVector<uint32_t, 2> dependencies;

  bool operator==(const Step &) const = default;
};

using Steps = std::vector<Step>;

/// What FlatForm.h asks for of a property.
dialect::FlatForm flatten(const Steps &steps);
bool unflatten(const dialect::FlatForm &flat, Steps &steps);

} // namespace occl::inst
