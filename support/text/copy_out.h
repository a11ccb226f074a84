// Text into a caller's buffer, as functions of C interfaces give it.
#pragma once

#include <cstddef>
#include <string>

namespace occl {

/// As much of the text as there is room for, terminated, unless there is no room at all; the length
/// of the whole into *length, unless that is null, so that the caller sees whether it was cut.
inline void copyOut(const std::string &text, char *buffer, size_t capacity, size_t *length) {
  if (length)
    *length = text.size();
  if (capacity != 0)
    buffer[text.copy(buffer, capacity - 1)] = '\0';
}

} // namespace occl
