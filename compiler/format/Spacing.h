// Where blanks go within a line.
#pragma once

#include "compiler/format/Pieces.h"

#include <span>

namespace occl::format {

/// For each piece, whether a blank stands between it and the piece before where both are on one
/// line. Tokens only: a comment's distance is the layout's.
std::vector<bool> blanksBefore(std::span<const Piece> pieces);

} // namespace occl::format
