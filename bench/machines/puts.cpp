// What a connection between two ranks carries: goodput of puts in one direction, by size, and half
// of the time of a word there and back. Two threads of this machine:
//   puts TRANSPORT [SECONDS]      as OCCL_NET names one: tcp, verbs, ncclnet:PATH
// Columns: bytes of a put, MB/s, microseconds of a word. What arrives is checked first.
#include "runtime/net/choose/choose_transport.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace occl;
using namespace occl::net;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kRegionBytes = 4 << 20;
constexpr uint64_t kWord = kRegionBytes - 8;

struct Side final : Sink {
  std::vector<uint64_t> memory = std::vector<uint64_t>(kRegionBytes / 8);
  std::unique_ptr<Endpoint> endpoint;

  bool message(std::span<const std::byte>) override { return false; }
  uint64_t word() const { return loadShared(&memory[kWord / 8], std::memory_order_acquire); }
  void put(std::span<const uint64_t> words, uint64_t offset, uint64_t word) {
    const Put put = {.region = 0,
                     .offset = offset,
                     .bytes = std::as_bytes(words),
                     .hasWord = true,
                     .wordOffset = kWord,
                     .word = word};
    for (;;)
      switch (endpoint->put(put)) {
      case Posted::Yes:
        endpoint->flush();
        return;
      case Posted::Full:
        endpoint->flush();
        receiveSome();
        break;
      case Posted::Down:
        std::fprintf(stderr, "puts: the connection is down: %s\n", endpoint->whyDown().c_str());
        std::exit(1);
      }
  }
  /// Waits until something has come, as the receiving thread of a rank does, and handles it.
  void receiveSome() {
    if (endpoint->mustBePolled()) {
      if (!endpoint->receive(*this))
        std::this_thread::yield();
      return;
    }
    std::vector<pollfd> descriptors;
    for (int descriptor : endpoint->descriptors())
      descriptors.push_back({descriptor, POLLIN, 0});
    poll(descriptors.data(), descriptors.size(), /*milliseconds=*/1);
    while (endpoint->receive(*this)) {
    }
  }
};

void connect(Side &a, Side &b, const AllowedTransports &allowed) {
  auto listener = listenOn(loopback(0));
  const Deadline deadline(std::chrono::seconds(30));
  auto first = connectTo(std::vector{*addressOf(*listener)}, deadline);
  auto second = acceptFrom(*listener, deadline);
  const auto join = [&](Side &side, Descriptor socket, uint32_t rank) {
    Regions regions;
    regions[0] = std::as_writable_bytes(std::span(side.memory));
    std::vector<ConnectRequest> requests;
    requests.push_back({1 - rank, rank, 1 - rank, std::move(socket), regions});
    auto connected =
        connectEndpoints(rank, std::move(requests), std::chrono::seconds(30), allowed, deadline);
    if (!connected.ok()) {
      std::fprintf(stderr, "puts: %s\n", connected.status().message().c_str());
      std::exit(1);
    }
    side.endpoint = std::move(connected->front().endpoint);
  };
  std::thread other([&] { join(b, std::move(*second), 1); });
  join(a, std::move(*first), 0);
  other.join();
}

/// A rank that only receives, and handles what the other one says of room.
class Receiver {
public:
  explicit Receiver(Side &side)
      : thread([this, &side] {
          while (!ends.load(std::memory_order_relaxed))
            side.receiveSome();
        }) {}
  ~Receiver() {
    ends = true;
    thread.join();
  }

private:
  std::atomic<bool> ends{false};
  std::thread thread;
};

/// Waits until all that was put is there, so that the last part counts.
double goodput(Side &a, Side &b, uint64_t bytes, double seconds, uint64_t &word) {
  const Receiver receiver(b);
  const std::vector<uint64_t> words(bytes / 8, word + 1);
  const uint64_t slots = (kRegionBytes - 8) / bytes;
  const auto run = [&](double until) {
    const auto begin = Clock::now();
    uint64_t count = 0;
    std::chrono::duration<double> taken{};
    do {
      ++word;
      a.put(words, word % slots * bytes, word);
      ++count;
      taken = Clock::now() - begin;
    } while (taken.count() < until);
    while (b.word() < word) {
      a.endpoint->flush();
      a.receiveSome();
    }
    taken = Clock::now() - begin;
    return static_cast<double>(count * bytes) / taken.count() * 1e-6;
  };
  run(seconds / 4); // until what is much used is registered
  const double result = run(seconds);
  for (uint64_t at = 0; at < bytes / 8; ++at)
    if (b.memory[word % slots * bytes / 8 + at] != words[0]) {
      std::fprintf(stderr, "puts: wrong data\n");
      std::exit(1);
    }
  return result;
}

double halfRoundTrip(Side &a, Side &b, double seconds, uint64_t &word) {
  const uint64_t first = word;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    for (uint64_t next = first + 1; !ends; ++next) {
      while (b.word() < next && !ends)
        b.receiveSome();
      b.put({}, 0, next);
    }
  });
  const auto begin = Clock::now();
  std::chrono::duration<double> taken{};
  do {
    a.put({}, 0, ++word);
    while (a.word() < word)
      a.receiveSome();
    taken = Clock::now() - begin;
  } while (taken.count() < seconds);
  ends = true;
  other.join();
  return taken.count() * 1e6 / 2 / static_cast<double>(word - first);
}

} // namespace

int main(int argc, char **argv) {
  const std::string transport = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  setenv("OCCL_NET", transport.c_str(), 1);
  const auto allowed = transportsOfEnvironment();
  if (!allowed.ok() || seconds <= 0) {
    std::fprintf(stderr, "usage: puts TRANSPORT [SECONDS]: %s\n",
                 allowed.status().message().c_str());
    return 2;
  }
  Side a, b;
  connect(a, b, *allowed);
  uint64_t word = 0;
  const double latency = halfRoundTrip(a, b, seconds, word);
  std::printf("| bytes | MB/s | us |\n|---:|---:|---:|\n| 8 | | %.1f |\n", latency);
  for (const uint64_t bytes : {1u << 10, 4u << 10, 16u << 10, 64u << 10, 128u << 10})
    std::printf("| %llu | %.0f | |\n", static_cast<unsigned long long>(bytes),
                goodput(a, b, bytes, seconds, word));
}
