// Lines of protocols LL and LL128 in memory that threads and processes of a host share.
//
// Memory order. LL: data and flag are one word, stored and loaded as one, so they cannot come
// apart on any processor, and nothing else needs an order. LL128: the data is stored first, then
// the flag with release; the reader loads the flag with acquire, then the data. On x86 both are
// plain moves, as stores become visible in their order; other processors get the instructions that
// they need from the compiler. As flag and data lie on one cache line, it crosses between cores
// once. The reader looks at a line again when it unpacks it: it stays as it is until the credit for
// its slot is returned, or for ever.
#pragma once

#include "runtime/exec/step/invocation.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace occl::interpreter::lines {

namespace detail {

inline uint64_t loadWord(const char *line) {
  return loadShared(reinterpret_cast<const uint64_t *>(line), std::memory_order_relaxed);
}

inline bool hasFlag(const LineFormat &format, const char *line, uint64_t flag) {
  if (format.bytes == kWordLineBytes)
    return static_cast<uint32_t>(loadWord(line) >> 32) == static_cast<uint32_t>(flag);
  return loadShared(reinterpret_cast<const uint64_t *>(line + format.dataBytes),
                    std::memory_order_acquire) == flag;
}

/// Calls visit(line, offset, bytes) for every line of a slice of `bytes`, at least one.
template <class Line, class Visit>
void forEach(const LineFormat &format, Line *line, uint64_t bytes, Visit visit) {
  for (uint64_t offset = 0;; line += format.bytes, offset += format.dataBytes) {
    if (bytes - offset <= format.dataBytes)
      return visit(line, offset, bytes - offset);
    visit(line, offset, uint64_t{format.dataBytes});
  }
}

/// A copy of a size that is known when compiled, mostly.
inline void copyLine(char *to, const char *from, uint64_t bytes) {
  constexpr uint64_t kUsual = LinePolicy().wideLineBytes - sizeof(uint64_t);
  if (bytes == kUsual)
    std::memcpy(to, from, kUsual);
  else
    std::memcpy(to, from, bytes);
}

} // namespace detail

/// Whether all lines of a slice of `bytes` have the flag.
inline bool arrived(const LineFormat &format, const char *lines, uint64_t bytes, uint64_t flag) {
  for (;; lines += format.bytes, bytes -= format.dataBytes) {
    if (!detail::hasFlag(format, lines, flag))
      return false;
    if (bytes <= format.dataBytes)
      return true;
  }
}

/// The data of a slice that has arrived.
inline void unpack(const LineFormat &format, const char *lines, char *to, uint64_t bytes) {
  bool inWords = format.bytes == kWordLineBytes;
  detail::forEach(format, lines, bytes, [&](const char *line, uint64_t offset, uint64_t size) {
    if (!inWords)
      return detail::copyLine(to + offset, line, size);
    auto data = static_cast<uint32_t>(detail::loadWord(line));
    std::memcpy(to + offset, &data, size);
  });
}

/// Stores a slice and makes it visible.
inline void pack(const LineFormat &format, const char *from, char *lines, uint64_t bytes,
                 uint64_t flag) {
  bool inWords = format.bytes == kWordLineBytes;
  detail::forEach(format, lines, bytes, [&](char *line, uint64_t offset, uint64_t size) {
    if (!inWords) {
      detail::copyLine(line, from + offset, size);
      storeShared(reinterpret_cast<uint64_t *>(line + format.dataBytes), flag,
                  std::memory_order_release);
      return;
    }
    uint32_t data = 0;
    std::memcpy(&data, from + offset, size);
    storeShared(reinterpret_cast<uint64_t *>(line), flag << 32 | data, std::memory_order_relaxed);
  });
}

} // namespace occl::interpreter::lines
