// One end of a connection in tests: an endpoint, and what its peer may write to.
#pragma once

#include "runtime/net/transport/transport.h"
#include "runtime/sync/atomic.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace occl::net {

inline constexpr uint64_t kRegionBytes = 1 << 20;

struct Side final : Sink {
  std::vector<uint64_t> memory[kNumRegions];
  Regions regions;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::string> messages;
  std::string refused; // a message that makes no sense to it

  Side() {
    for (uint32_t r = 0; r < kNumRegions; ++r) {
      memory[r].resize(kRegionBytes / sizeof(uint64_t));
      regions[r] = std::as_writable_bytes(std::span(memory[r]));
    }
  }
  bool message(std::span<const std::byte> bytes) override {
    messages.emplace_back(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return messages.back() != refused;
  }
  uint64_t word(uint32_t region, uint64_t offset) const {
    return loadShared(&memory[region][offset / sizeof(uint64_t)], std::memory_order_acquire);
  }
  /// What its two threads do all the time, if nothing else calls them.
  void poll() {
    endpoint->flush();
    if (endpoint->mustBePolled())
      endpoint->receive(*this);
  }
  /// Receives until `there()`, a while at most.
  template <class There> bool await(There there) {
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         !there() && std::chrono::steady_clock::now() < end;) {
      if (!endpoint->receive(*this))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return there();
  }
};

} // namespace occl::net
