// The ring of an ordered pair of ranks, of which each side has one end. Transfers follow each other
// in it, each a line and then, unless the line says where the data lie, the data, padded to whole
// lines. It lies with the source; docs/decisions/transfers.md says why it is as it is.
//
// Positions count bytes, in 64 bits, so that they do not wrap around in the life of a machine.
// Bytes below the tail may be read: the tail is stored with release after they were written. Bytes
// below the head may be written over: the head is stored with release after they were read.
//
// The other side may be damaged: its position is read once and checked, and nothing but the ring
// and the caller's buffer is accessed.
#pragma once

#include "runtime/control/records/segment.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace occl::transfer {

inline constexpr uint64_t kLineBytes = 64;
constexpr uint64_t wholeLines(uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

/// Before the data of a transfer.
struct alignas(kLineBytes) Line {
  uint64_t number = 0; // of the pair's transfers, from 0 on
  uint64_t count = 0;
  uint64_t type = 0;      // a DataType
  uint64_t reference = 0; // to the sender's buffer; 0: the data follow
};
static_assert(sizeof(Line) == kLineBytes);

namespace detail {

/// Calls copy(place in the ring, offset, bytes) for the one or two stretches of [position,
/// + bytes).
template <class Copy>
void forEachStretch(const transport::PairRing &ring, uint64_t position, uint64_t bytes, Copy copy) {
  touchShared(ring.data);
  const uint64_t begin = position & (ring.size - 1);
  const uint64_t first = std::min(bytes, ring.size - begin);
  if (first != 0)
    copy(ring.data + begin, uint64_t{0}, first);
  if (first != bytes)
    copy(ring.data, first, bytes - first);
}

} // namespace detail

/// The source's end. Thread safety: one thread at a time.
class RingSource {
public:
  explicit RingSource(const transport::PairRing &ring) : ring(ring) {}

  /// Bytes that can be written now, whole lines; nothing if the head is damaged.
  std::optional<uint64_t> room() {
    const uint64_t head = ring.head->bytes.load(std::memory_order_acquire);
    if (written - head > ring.size || head % kLineBytes != 0)
      return std::nullopt;
    return ring.size - (written - head);
  }
  /// Nobody sees it before publish(). There is room for it, in whole lines.
  void write(const void *from, uint64_t bytes) {
    detail::forEachStretch(ring, written, bytes, [&](void *to, uint64_t offset, uint64_t length) {
      std::memcpy(to, static_cast<const char *>(from) + offset, length);
    });
    written += wholeLines(bytes);
  }
  uint64_t unpublished() const { return written - published; }
  /// The destination's doorbell is to be rung afterwards.
  void publish() {
    published = written;
    ring.tail->bytes.store(written, std::memory_order_release);
  }
  /// Behind the last byte that was written.
  uint64_t position() const { return written; }
  /// Whether the destination is through with all that was written before `upTo`.
  bool isConsumed(uint64_t upTo) const {
    return static_cast<int64_t>(ring.head->bytes.load(std::memory_order_acquire) - upTo) >= 0;
  }

private:
  transport::PairRing ring;
  uint64_t written = 0, published = 0;
};

/// The destination's end. Thread safety: one thread at a time.
class RingSink {
public:
  explicit RingSink(const transport::PairRing &ring) : ring(ring) {}

  /// Bytes that can be read now, whole lines; nothing if the tail is damaged.
  std::optional<uint64_t> available() {
    const uint64_t tail = ring.tail->bytes.load(std::memory_order_acquire);
    if (tail - consumed > ring.size || tail % kLineBytes != 0)
      return std::nullopt;
    return tail - consumed;
  }
  /// Copies the next bytes, which are available in whole lines, and leaves them there.
  void look(void *to, uint64_t bytes) const {
    detail::forEachStretch(ring, consumed, bytes,
                           [&](const void *from, uint64_t offset, uint64_t length) {
                             std::memcpy(static_cast<char *>(to) + offset, from, length);
                           });
  }
  /// Goes on behind them. The source does not know before release().
  void skip(uint64_t bytes) { consumed += wholeLines(bytes); }
  uint64_t unreleased() const { return consumed - released; }
  /// Skipped bytes may be written over. The source's doorbell is to be rung afterwards.
  void release() {
    released = consumed;
    ring.head->bytes.store(consumed, std::memory_order_release);
  }

private:
  transport::PairRing ring;
  uint64_t consumed = 0, released = 0;
};

} // namespace occl::transfer
