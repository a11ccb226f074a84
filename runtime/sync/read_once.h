// Plain words that another process may change at any time, because it is damaged: what has been
// checked must be what is used.
#pragma once

#include <type_traits>

namespace occl {

/// The value of a word, loaded once however often the result is used. No order is implied.
template <class T> T readOnce(const T &word) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  return *static_cast<const volatile T *>(&word);
}

} // namespace occl
