// The one layout of .coll source.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/diagnostics/SourceManager.h"

#include <optional>
#include <string>

namespace occl::format {

/// Blocks written on one line are opened where the line would be longer, in bytes.
inline constexpr size_t kMaxColumns = 120;

/// The text of a file in its canonical layout: two spaces a block, one statement a line, one space
/// around operators, trailing comments of neighbouring lines side by side, at most one blank line
/// in a row. Line breaks within a statement and blocks on one line are the author's and stay.
/// Tokens and comments are the same as before, in the same order; formatting twice gives the same
/// text. Nothing if the file has syntax errors, which are then in `diagnostics`.
std::optional<std::string> format(const frontend::SourceManager &sources, frontend::FileId file,
                                  frontend::DiagnosticEngine &diagnostics);

} // namespace occl::format
