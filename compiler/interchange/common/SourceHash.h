// The hash of what a plan was made from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace occl::interchange {

/// 16 hexadecimal digits: FNV-1a of a file's text and of the options that change what is made of
/// it.
std::string hashOf(std::string_view text, uint32_t depth, uint32_t root,
                   std::string_view collective);

} // namespace occl::interchange
