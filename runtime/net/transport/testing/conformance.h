// What every transport must do: instantiate the suite Transport for it.
#pragma once

#include "runtime/net/transport/transport.h"
#include "runtime/sync/atomic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
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

/// Makes the two ends of a connection, or fails the test.
using Connect = void (*)(Side &a, Side &b);

class Transport : public ::testing::TestWithParam<Connect> {
protected:
  Transport() { GetParam()(a, b); }
  /// Sends it, or fails the test.
  void put(const Put &put) {
    ASSERT_EQ(a.endpoint->put(put), Posted::Yes);
    a.endpoint->flush();
  }

  Side a, b;
};

} // namespace occl::net
