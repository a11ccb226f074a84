// Where reports, traces and statistics go: standard error or files with the rank in their names.
#pragma once

#include "runtime/base/status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace occl::insight {

/// `pattern` with %r replaced by the rank, %p by the process and %% by %. One without %r gets
/// ".<rank>" at its end if `numRanks` is more than 1, so that ranks never write the same file.
std::string pathOf(std::string_view pattern, uint32_t rank, uint32_t numRanks);

/// Appends `text` to the file, in one piece; an empty path is standard error. SystemError, also if
/// it is a pipe that nobody reads: after `patience`.
Status append(const std::string &path, std::string_view text,
              std::chrono::milliseconds patience = std::chrono::seconds(2));

/// Writes `text` to <path>.new, which then takes the place of `path`: readers find one text or the
/// other, whole. SystemError, and `path` as it was, also if <path>.new is there already: it may be
/// another user's, or a link.
Status replace(const std::string &path, std::string_view text);

/// Says on standard error what went wrong, if anything did and somebody reads it.
void complain(const Status &status);

} // namespace occl::insight
