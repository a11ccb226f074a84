// A buffer that notices writes outside of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace occl::interpreter::conformance {

class GuardedBuffer {
public:
  GuardedBuffer() = default;
  /// `misalignment` bytes past a multiple of 16, filled with `fill`.
  GuardedBuffer(uint64_t bytes, uint64_t misalignment, char fill)
      : storage(bytes + 2 * kGuard + 16, kCanary), length(bytes) {
    uint64_t address = reinterpret_cast<uint64_t>(storage.data()) + kGuard;
    start = kGuard + (16 - address % 16) % 16 + misalignment % 16;
    std::fill_n(data(), length, fill);
  }

  char *data() { return storage.data() + start; }
  const char *data() const { return storage.data() + start; }
  uint64_t size() const { return length; }
  /// Nothing outside was written.
  bool intact() const {
    auto isCanary = [](char c) { return c == kCanary; };
    return std::all_of(storage.data(), data(), isCanary) &&
           std::all_of(data() + length, storage.data() + storage.size(), isCanary);
  }

private:
  static constexpr uint64_t kGuard = 144;
  static constexpr char kCanary = 0x5a;

  std::vector<char> storage;
  uint64_t length = 0;
  uint64_t start = 0;
};

} // namespace occl::interpreter::conformance
