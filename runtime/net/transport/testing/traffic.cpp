#include "runtime/net/transport/testing/traffic.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// Sends puts of many sizes to random places, and checks what arrives: each 8 bytes of a put are
/// its number, and the place of a put is that of its number, so that nothing later covers it.
class Traffic {
public:
  Traffic(unsigned seed, uint64_t numPuts) : random(seed) {
    for (uint64_t i = 1; i <= numPuts; ++i) {
      const uint64_t most = random() % 3 == 0 ? kMaxPut : random() % 2 ? 16 << 10 : 64;
      sizes.push_back((random() % most) / 8 * 8);
    }
  }

  /// Whether it was taken. Words: the number that was sent, and the number that the peer has read.
  bool sendOne(Side &side, uint64_t number) {
    const uint64_t size = sizes[number - 1];
    bytes.assign(size / 8, number);
    return side.endpoint->put({.region = 1,
                               .offset = placeOf(number),
                               .bytes = std::as_bytes(std::span(bytes)),
                               .hasWord = true,
                               .wordOffset = kSentWord,
                               .word = number}) == Posted::Yes;
  }
  bool isRight(const Side &side, uint64_t number) const {
    const uint64_t *place = &side.memory[1][placeOf(number) / 8];
    return std::all_of(place, place + sizes[number - 1] / 8,
                       [&](uint64_t word) { return word == number; });
  }
  uint64_t size() const { return sizes.size(); }
  static constexpr uint64_t kSentWord = kRegionBytes - 8;
  /// Two puts may be under way: the places are halves of the region.
  static constexpr uint64_t kUnderWay = 2;

private:
  uint64_t placeOf(uint64_t number) const {
    return number % kUnderWay * (kRegionBytes / 2) + number * 64 % 4096;
  }

  std::mt19937 random;
  std::vector<uint64_t> sizes, bytes;
};

/// One rank of a conversation: sends its puts, and checks the peer's.
void converseAs(Side &side, Traffic &own, const Traffic &theirs, std::chrono::seconds patience,
                std::string &fault) {
  uint64_t sent = 0, seen = 0;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (sent < own.size() || seen < theirs.size()) {
    if (std::chrono::steady_clock::now() > end || side.endpoint->isDown()) {
      fault = "sent " + std::to_string(sent) + ", seen " + std::to_string(seen) + ": " +
              side.endpoint->whyDown();
      return;
    }
    // The peer says in region 0 how many it has checked.
    if (sent < own.size() && sent < side.word(0, 0) + Traffic::kUnderWay)
      sent += own.sendOne(side, sent + 1);
    side.endpoint->flush();
    if (!side.endpoint->receive(side))
      std::this_thread::sleep_for(20us);
    const uint64_t there = side.word(1, Traffic::kSentWord);
    while (seen < there)
      if (!theirs.isRight(side, ++seen)) {
        fault = "put " + std::to_string(seen) + " is damaged";
        return;
      }
    while (side.endpoint->put({.hasWord = true, .wordOffset = 0, .word = seen}) == Posted::Full) {
      side.endpoint->flush();
      side.endpoint->receive(side);
    }
  }
  // The last count has to get there.
  while (!(side.endpoint->flush() && side.endpoint->isDelivered()) && !side.endpoint->isDown())
    side.endpoint->receive(side);
}

/// Where the peer's process has to say that something is there, it goes on until the other one has
/// heard it.
void converseUntilBothEnd(Side &side, Traffic &own, const Traffic &theirs,
                          std::chrono::seconds patience, std::string &fault,
                          std::atomic<int> &numEnded) {
  converseAs(side, own, theirs, patience, fault);
  for (++numEnded; numEnded < 2 && !side.endpoint->isDown(); std::this_thread::sleep_for(20us))
    side.poll();
}

} // namespace

void converse(Side &a, Side &b, uint64_t numPuts, std::chrono::seconds patience) {
  const auto seed = static_cast<unsigned>(printedSeed());
  Traffic ofA(seed, numPuts), ofB(seed + 1, numPuts);
  std::string faults[2];
  std::atomic<int> numEnded{0};
  std::thread other([&] { converseUntilBothEnd(b, ofB, ofA, patience, faults[1], numEnded); });
  converseUntilBothEnd(a, ofA, ofB, patience, faults[0], numEnded);
  other.join();
  EXPECT_EQ(faults[0], "");
  EXPECT_EQ(faults[1], "");
}

} // namespace occl::net
