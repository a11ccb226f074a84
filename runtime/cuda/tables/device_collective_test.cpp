// The numbers of ordered connectors: what of earlier calls can be found where a call looks.
#include "runtime/cuda/tables/device_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint64_t kBlockBytes = 4096;

DeviceCollective ordered(uint32_t lead) {
  DeviceCollective device;
  device.ring = kMaxRing;
  device.lead = lead;
  device.ringStride = kBlockBytes;
  return device;
}

/// Of a program of protocol Simple.
DeviceCollective shared(uint32_t lead) {
  DeviceCollective device = ordered(lead);
  device.ringStride = 0;
  std::ranges::fill(device.ringOffsets, kMaxRing * kBlockBytes);
  return device;
}

/// After so many uses of a block 32 bits of flags come again.
constexpr uint64_t kWrap = (uint64_t{1} << 32) / kOrderedFlags;
constexpr uint64_t kManyCalls[] = {0, kMaxRing *kWrap - 3, (uint64_t{1} << 40) + 12345};

TEST(OrderedLines, OfEachBlockAreClearedWithinOneWrapOfFlags) {
  const DeviceCollective device = ordered(1);
  for (uint64_t first : kManyCalls) {
    std::array<uint64_t, kMaxRing> uses{}, longest{}, clears{};
    for (uint64_t n = first; n < first + 3 * kMaxRing * kUsesUncleared; ++n) {
      const uint64_t block = device.blockOf(n);
      longest[block] = std::max(longest[block], ++uses[block]);
      if (!device.clearsLines(n))
        continue;
      uses[block] = 0;
      ++clears[block];
    }
    for (uint32_t block = 0; block < kMaxRing; ++block) {
      EXPECT_EQ(clears[block], 3u);
      EXPECT_LT(longest[block], kWrap);
    }
  }
}

/// By the low halves of flags, which is all that lines of LL have: which use of the block had them
/// last. More uses than a wrap has.
TEST(OrderedLines, HaveNoFlagOfACallThatWasNotClearedSince) {
  const DeviceCollective device = ordered(1);
  std::vector<uint32_t> lastUse(kWrap); // 1 + its number among the test's
  for (uint64_t block = 0; block < kMaxRing; ++block) {
    std::ranges::fill(lastUse, 0);
    uint32_t cleared = 0; // uses up to there
    bool isAsItShould = true;
    for (uint32_t use = 0; use < kWrap + kWrap / 2; ++use) {
      const uint64_t number = use * uint64_t{kMaxRing} + block;
      const auto flags = static_cast<uint32_t>(device.flagBaseOf(number));
      // A call's flags follow its base, so no two calls' overlap, and none is that of a zero line.
      isAsItShould &= flags % kOrderedFlags == 0 && device.blockOf(number) == block;
      uint32_t &last = lastUse[flags / kOrderedFlags];
      isAsItShould &= last <= cleared;
      last = use + 1;
      if (device.clearsLines(number))
        cleared = use + 1;
    }
    EXPECT_TRUE(isAsItShould) << "block " << block;
    EXPECT_GT(cleared, 0u);
  }
}

/// Of 64 bits, which lines of LL128 and words have: they only grow.
TEST(OrderedWords, AreLargerThanAllOfTheCallsBefore) {
  const DeviceCollective device = ordered(1);
  EXPECT_GT(device.wordBaseOf(0), 0u);
  for (uint64_t first : kManyCalls)
    for (uint64_t n = first; n < first + 1000; ++n) {
      const uint64_t next = n + kMaxRing;
      ASSERT_EQ(device.blockOf(n), device.blockOf(next));
      EXPECT_GE(device.flagBaseOf(next), device.flagBaseOf(n) + kOrderedFlags);
      EXPECT_GE(device.wordBaseOf(n + 1), device.wordBaseOf(n) + (1u << kWordShift));
    }
}

TEST(OrderedRecords, WordsAreOfOneCall) {
  for (uint64_t n : kManyCalls)
    for (uint64_t other : {n + 1, n + 2, n + kMaxRing, n + kTurns, n + (1 << 20)}) {
      EXPECT_TRUE(isSignatureOf(signatureWord(n, 0xffff), n));
      EXPECT_FALSE(isSignatureOf(signatureWord(n, 0xffff), other));
      EXPECT_FALSE(isSignatureOf(signatureWord(other, 0), n));
      EXPECT_TRUE(isOfInvocation(bufferWord(n, (1ull << 40) - 1), n));
      EXPECT_FALSE(isOfInvocation(bufferWord(n, (1ull << 40) - 1), other));
      EXPECT_FALSE(isOfInvocation(bufferWord(other, 0), n));
    }
  EXPECT_FALSE(isSignatureOf(0, 0)) << "a record in which nothing was said";
  EXPECT_EQ(offsetIn(bufferWord(7, 12345)), 12345u);
}

/// Whatever the number: a kernel that looks early finds zeroes, and at the begin of an arena lie
/// the records.
TEST(OrderedRecords, NoInvocationsBuffersAreWhereNothingWasSaid) {
  for (uint32_t bits = 0; bits < 62; ++bits)
    for (uint64_t n = (uint64_t{1} << bits) - 1; n <= (uint64_t{1} << bits) + 1; ++n)
      EXPECT_FALSE(isOfInvocation(0, n)) << n;
}

/// If no program is direct for longer than the numbers in these words take to come again.
TEST(OrderedRecords, NoInvocationsBuffersAreThoseOfOneLongAgo) {
  constexpr uint64_t kComeAgain = uint64_t{1} << kBufferNumberBits;
  for (uint64_t first : kManyCalls) {
    std::array<uint64_t, kTurns> said{}, saidFor{};
    for (uint64_t n = first; n < first + 3 * kComeAgain; ++n) {
      const uint32_t turn = DeviceCollective::turnOf(n);
      if (said[turn] != 0) {
        ASSERT_FALSE(isOfInvocation(said[turn], n)) << n << " after " << saidFor[turn];
        ASSERT_LT(n - saidFor[turn], kComeAgain);
      }
      if (n < first + kTurns || renewsBuffers(n)) {
        said[turn] = bufferWord(n, 4096);
        saidFor[turn] = n;
      }
    }
  }
}

/// Where a rank stands: it has said that it begins `call`, so it has finished those before; and it
/// has begun it, or waits for others.
struct Standing {
  uint64_t call;
  bool hasBegun;

  auto operator<=>(const Standing &) const = default;
};
using State = std::vector<Standing>;

TEST(SharedBlock, IsWhereItIsWhateverTheNumber) {
  DeviceCollective device = ordered(1);
  device.ringOffsets[1] = -65536;
  for (uint64_t n : {0, 1, 2, 3, 4, 1001}) {
    device.ringStride = kBlockBytes;
    EXPECT_EQ(device.blockOffset(n, 0), n % kMaxRing * kBlockBytes);
    EXPECT_EQ(device.blockOffset(n, 1) + 65536, n % kMaxRing * kBlockBytes);
    device.ringStride = 0;
    EXPECT_EQ(device.blockOffset(n, 1) + 65536, 0u);
  }
}

/// All that ranks can come to that begin when `calls` lets them or later, in any order: so also
/// ranks of which some begin with a smaller lead. Call first + i is calls[i], over and over. Calls
/// are counted from the last such round's first one that the rank furthest behind has come to,
/// `first`: what follows from numbers repeats itself with them.
class Ranks {
public:
  Ranks(uint32_t numRanks, std::vector<DeviceCollective> calls, uint64_t first)
      : calls(std::move(calls)), first(first) {
    visit(State(numRanks, Standing{0, false}));
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      for (uint32_t r = 0; r < numRanks; ++r)
        state[r].hasBegun ? finish(state, r) : begin(state, r);
    }
  }
  uint64_t furthestAhead = 0;
  uint64_t states() const { return seen.size(); }
  /// Whether what the rank says of a call lies where another rank still has to read something, and
  /// whether a call begins in, or is cleared from, a block that another one is in.
  bool overwritesPlaces = false, sharesBlocks = false, clearsOthers = false;

private:
  void visit(State state) {
    const uint64_t behind = std::ranges::min(state, {}, &Standing::call).call;
    for (Standing &rank : state)
      rank.call -= behind / calls.size() * calls.size();
    if (seen.insert(state).second)
      open.push_back(std::move(state));
  }

  void begin(State state, uint32_t r) {
    const uint64_t number = first + state[r].call;
    for (const Standing &peer : state)
      if (&peer != &state[r] && !callOf(number).letsBegin(first + peer.call + 1, number))
        return;
    state[r].hasBegun = true;
    for (const Standing &peer : state)
      for (uint64_t m = first + peer.call; m < number; ++m)
        sharesBlocks |= callOf(m).blockOffset(m, 0) == callOf(number).blockOffset(number, 0);
    visit(std::move(state));
  }

  void finish(State state, uint32_t r) {
    const uint64_t ended = first + state[r].call, number = ended + 1;
    for (const Standing &peer : state) {
      const uint64_t begun = first + peer.call + peer.hasBegun; // those before
      for (uint64_t m = ended + 1; m < begun; ++m)
        clearsOthers |= callOf(m).blockOf(m) == callOf(ended).blockOf(ended);
    }
    state[r] = {state[r].call + 1, false};
    for (const Standing &peer : state) {
      if (peer.call < state[r].call)
        furthestAhead = std::max(furthestAhead, state[r].call - peer.call);
      for (uint64_t m = first + peer.call; m < number; ++m)
        overwritesPlaces |= DeviceCollective::turnOf(m) == DeviceCollective::turnOf(number);
    }
    visit(std::move(state));
  }

  const DeviceCollective &callOf(uint64_t number) const {
    return calls[(number - first) % calls.size()];
  }

  const std::vector<DeviceCollective> calls;
  const uint64_t first;
  std::set<State> seen;
  std::vector<State> open;
};

TEST(OrderedRecords, AreNotOverwrittenBeforeAllRanksHaveReadThem) {
  for (uint32_t numRanks : {2u, 3u, 4u})
    for (uint64_t base : kManyCalls)
      for (uint64_t first = base; first < base + kTurns; ++first) {
        const Ranks ranks(numRanks, {ordered(kMaxRing)}, first);
        EXPECT_FALSE(ranks.overwritesPlaces);
        EXPECT_FALSE(ranks.sharesBlocks);
        EXPECT_FALSE(ranks.clearsOthers);
        // It says so before it waits. So as many places as blocks would not do.
        EXPECT_EQ(ranks.furthestAhead, kMaxRing);
        EXPECT_GT(ranks.states(), numRanks * 4);
      }
}

TEST(OrderedRecords, AreOverwrittenWithoutTheWait) {
  DeviceCollective device = ordered(kMaxRing + 1);
  EXPECT_TRUE(Ranks(2, {device}, 0).sharesBlocks);
  EXPECT_TRUE(Ranks(2, {device}, 0).clearsOthers);
  device.lead = kTurns;
  EXPECT_TRUE(Ranks(2, {device}, 0).overwritesPlaces);
}

TEST(SharedBlock, HasOneCallAtATimeWhateverComesInBetween) {
  for (uint32_t numRanks : {2u, 3u})
    for (uint32_t bits = 0; bits < 64; ++bits) {
      std::vector<DeviceCollective> calls;
      for (uint32_t n = 0; n < 6; ++n)
        calls.push_back(bits >> n & 1 ? shared(1) : ordered(kMaxRing));
      EXPECT_FALSE(Ranks(numRanks, std::move(calls), 0).sharesBlocks) << bits;
    }
}

TEST(SharedBlock, HasTwoWithALargerLead) {
  EXPECT_TRUE(Ranks(2, {shared(2)}, 0).sharesBlocks);
  EXPECT_TRUE(Ranks(2, {shared(kMaxRing), ordered(kMaxRing)}, 0).sharesBlocks);
}

} // namespace
} // namespace occl::cuda
