// From tokens to the syntax tree of one file.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/syntax/AST.h"

#include <memory>

namespace occl::frontend {

/// Bounds recursion over nested constructs, so that no input exhausts the stack.
inline constexpr unsigned kMaxNesting = 100;
inline constexpr unsigned kMaxLoopVariables = 16; // of one loop

/// Never null; what could not be understood is reported and left out of the tree. Takes time linear
/// in the text's size.
std::unique_ptr<Module> parse(const SourceManager &sources, FileId file,
                              DiagnosticEngine &diagnostics);

} // namespace occl::frontend
