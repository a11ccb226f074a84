// Memory from which requests are sent: bytes that somebody gave to a put may change as soon as it
// returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::net {

/// A ring: what was taken first is free first. No thread safety.
class Staging {
public:
  /// `bytes`: a power of two of them.
  explicit Staging(std::span<std::byte> bytes) : bytes(bytes) {}

  /// Empty if there is no such range now, or less than `spare` bytes would be left.
  std::span<std::byte> take(uint64_t size, uint64_t spare);
  /// Where the ring ends now: give it to freeUntil() or, before anything uses what was taken since,
  /// to takeBack().
  uint64_t position() const { return tail; }
  void takeBack(uint64_t position) { tail = position; }
  /// All that had been taken at that position.
  void freeUntil(uint64_t position) { head = position; }

private:
  std::span<std::byte> bytes;
  uint64_t head = 0, tail = 0; // since the begin
};

} // namespace occl::net
