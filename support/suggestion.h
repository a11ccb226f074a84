// Which known name was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace occl::support {

/// The candidate with the smallest edit distance to `name`, if that is at most a third of the
/// name's length, rounded up; the first of several equally near; empty if
/// none is near enough.
std::string suggest(std::string_view name, const std::vector<std::string_view> &candidates);

/// "; did you mean 'x'?", or empty without suggestion.
std::string didYouMean(const std::string &suggestion);

} // namespace occl::support
