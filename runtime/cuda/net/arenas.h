// The arenas of a communicator's ranks in host memory, as the threads of this process access them.
#pragma once

#include "runtime/cuda/tables/device_collective.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/atomic.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace occl::cuda {

/// By rank: of another island it is the mirror that this rank has of it. All have the same size.
class HostArenas {
public:
  HostArenas(uint32_t rank, std::vector<std::span<std::byte>> arenas)
      : own(rank), arenas(std::move(arenas)) {}

  uint32_t rank() const { return own; }
  uint32_t numRanks() const { return static_cast<uint32_t>(arenas.size()); }
  uint64_t bytes() const { return arenas[own].size(); }
  char *of(uint32_t rank) const { return reinterpret_cast<char *>(arenas[rank].data()); }
  std::byte *at(uint32_t rank, uint64_t offset) const { return arenas[rank].data() + offset; }
  /// In that rank's arena.
  uint64_t offsetOf(uint32_t rank, const void *place) const {
    return static_cast<uint64_t>(static_cast<const std::byte *>(place) - arenas[rank].data());
  }

private:
  const uint32_t own;
  const std::vector<std::span<std::byte>> arenas;
};

/// Puts what lies in the mirror of a peer's arena to the same place in the arena. Functions are
/// false if there is no room now. One thread.
class ArenaPuts {
public:
  explicit ArenaPuts(const HostArenas &arenas) : arenas(arenas) {}

  /// To that rank, by its connection, from now on; nothing has moved.
  void begin(uint32_t rank, net::Endpoint &connection) {
    peer = rank;
    endpoint = &connection;
    moved = false;
  }
  bool hasMoved() const { return moved; }
  void noteMoved(bool more) { moved |= more; }

  bool bytes(std::span<const std::byte> of);
  /// A value in the place of a word.
  bool word(const uint64_t *place, uint64_t value) { return wordBehind({}, place, value); }
  /// After those bytes.
  bool wordBehind(std::span<const std::byte> before, const uint64_t *place, uint64_t value);

private:
  bool put(const net::Put &what);

  const HostArenas &arenas;
  uint32_t peer = 0;
  net::Endpoint *endpoint = nullptr;
  bool moved = false;
};

/// A word of 8 bytes of an arena, which a kernel may store to.
inline uint64_t acquireFrom(const uint64_t *word) {
  return loadShared(word, std::memory_order_acquire);
}

} // namespace occl::cuda
