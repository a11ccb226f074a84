// Whether what is stored and loaded directly leaves every access of memory the value that it had.
#pragma once

#include "compiler/passes/direct/DirectMessages.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace occl::passes {

/// Flags, by message: those that cannot go the way that they have now, since an access would read
/// or spoil another value, or a write would wait for an access by another rank. `order` is a linear
/// order of the program.
std::vector<bool> spoiltMessages(const DirectMessages &messages, llvm::ArrayRef<StepRef> order);

} // namespace occl::passes
