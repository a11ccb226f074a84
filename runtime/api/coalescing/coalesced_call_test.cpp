// Which calls are executed as one, rule by rule.
#include "runtime/api/coalescing/coalesced_call.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace occl::communicator {
namespace {

constexpr CoalescingRank kWhere = {0, 2};
constexpr uint64_t kCount = 1024; // floats, 4 KiB

/// All-reduces of buffers that are nobody else's.
class Coalescing : public testing::Test {
protected:
  occlCall_t &add() {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.count = kCount;
    call.sendBuffer = reinterpret_cast<const void *>(next += 1 << 24);
    call.recvBuffer = reinterpret_cast<void *>(next += 1 << 24);
    calls.push_back(call);
    return calls.back();
  }
  void addMany(size_t number) {
    while (number-- != 0)
      add();
  }
  std::vector<const occlCall_t *> pointers() const {
    std::vector<const occlCall_t *> all;
    for (const occlCall_t &call : calls)
      all.push_back(&call);
    return all;
  }
  size_t number(const CoalescingRank &where = kWhere) const {
    return numCoalesced(pointers(), where);
  }

  std::vector<occlCall_t> calls;
  uintptr_t next = uintptr_t{1} << 40;
};

TEST_F(Coalescing, CallsThatAreAlikeAreOne) {
  addMany(5);
  calls[3].count = 7;
  EXPECT_EQ(number(), 5u);
}

TEST_F(Coalescing, OneCallStaysAsItIs) {
  addMany(1);
  EXPECT_EQ(number(), 1u);
}

TEST_F(Coalescing, TwoAreOneOnlyIfTheyAreNotSmall) {
  addMany(2);
  EXPECT_EQ(number(), 1u);
  calls[1].count = (256 << 10) / 4 - kCount;
  EXPECT_EQ(number(), 2u);
  calls[1].count -= 4;
  EXPECT_EQ(number(), 1u);
  // Of an all-gather the output counts.
  for (occlCall_t &call : calls)
    call.kind = occlKindAllGather;
  EXPECT_EQ(number({0, 4}), 2u);
}

TEST_F(Coalescing, CallsThatDifferInTheirShapeEndTheRun) {
  using Change = void (*)(occlCall_t &);
  const Change changes[] = {[](occlCall_t &call) { call.kind = occlKindReduce; },
                            [](occlCall_t &call) { call.dataType = occlFloat16; },
                            [](occlCall_t &call) { call.op = occlMax; },
                            [](occlCall_t &call) { call.kind = occlKindPlan; },
                            [](occlCall_t &call) { call.scalar = &call; },
                            [](occlCall_t &call) { call.deviceScalar = &call; }};
  for (const Change &change : changes) {
    calls.clear();
    addMany(6);
    change(calls[3]);
    EXPECT_EQ(number(), 3u) << &change - changes;
    calls.erase(calls.begin(), calls.begin() + 3);
    EXPECT_EQ(number(), 1u) << &change - changes;
  }
}

TEST_F(Coalescing, TheLargerBufferOfTheOneIsLimited) {
  constexpr uint64_t kMost = cuda::PackedCalls::kMostBytes;
  addMany(3);
  calls[0].count = calls[1].count = kMost / 8;
  EXPECT_EQ(number(), 2u); // full
  calls[1].count += 1;
  EXPECT_EQ(number(), 1u);
  // Of an all-gather that is the output.
  for (occlCall_t &call : calls)
    call.kind = occlKindAllGather;
  calls[0].count = calls[1].count = kMost / 16;
  EXPECT_EQ(number(), 2u);
  EXPECT_EQ(number({0, 4}), 1u);
  // Bytes beyond 64 bits are no small call.
  calls[0].count = uint64_t{1} << 58;
  EXPECT_EQ(number({0, 64}), 1u);
}

TEST_F(Coalescing, BuffersThatOneWritesAndAnotherAccessesAreNotOfOne) {
  addMany(4);
  calls[3].sendBuffer = static_cast<const char *>(calls[0].sendBuffer) + 4;
  EXPECT_EQ(number(), 4u) << "two read the same";
  calls[3].sendBuffer = static_cast<const char *>(calls[0].recvBuffer) + 4 * kCount - 4;
  EXPECT_EQ(number(), 3u) << "the last one reads what the first one writes";
  calls[3].sendBuffer = static_cast<const char *>(calls[0].recvBuffer) + 4 * kCount;
  EXPECT_EQ(number(), 4u) << "side by side";
  calls[3].recvBuffer = const_cast<void *>(calls[1].sendBuffer);
  EXPECT_EQ(number(), 3u) << "the last one writes what the second one reads";
  calls[3].recvBuffer = calls[1].recvBuffer;
  EXPECT_EQ(number(), 3u) << "two write the same";
}

TEST_F(Coalescing, CallsInPlaceAreOne) {
  addMany(3);
  for (occlCall_t &call : calls)
    call.recvBuffer = const_cast<void *>(call.sendBuffer);
  EXPECT_EQ(number(), 3u);
}

/// Whose ranks have different buffers, of which other ones may overlap.
TEST_F(Coalescing, CallsWithARootStayApart) {
  addMany(4);
  for (occlKind_t kind : {occlKindBroadcast, occlKindReduce, occlKindGather, occlKindScatter}) {
    for (occlCall_t &call : calls)
      call.kind = kind;
    for (uint32_t rank : {0, 1})
      EXPECT_EQ(number({rank, 2}), 1u) << kind;
  }
}

TEST_F(Coalescing, DifferencesBetweenRanksThatAreAllowedDoNotEndTheRun) {
  addMany(4);
  calls[1].timeoutMs = 500;
  calls[2].timeoutMs = 200;
  EXPECT_EQ(number(), 4u);
  EXPECT_EQ(coalesce(pointers(), kWhere).call.timeoutMs, 200u);
  // An operation of a collective that reduces nothing is ignored.
  for (occlCall_t &call : calls)
    call.kind = occlKindAllGather;
  calls[3].op = occlMax;
  EXPECT_EQ(number(), 4u);
}

TEST_F(Coalescing, NoBytesOverlapNothing) {
  addMany(4);
  calls[2].count = 0;
  calls[2].recvBuffer = static_cast<char *>(calls[0].recvBuffer) + 8;
  EXPECT_EQ(number(), 4u);
}

TEST_F(Coalescing, CallsWhoseOwnBuffersAreWrongAreForOcclCallToRefuse) {
  addMany(4);
  calls[3].recvBuffer = static_cast<char *>(const_cast<void *>(calls[3].sendBuffer)) + 4;
  EXPECT_EQ(number(), 3u);
  // Of an all-gather a rank's input may be its part of the output.
  for (occlCall_t &call : calls)
    call.kind = occlKindAllGather;
  calls[3].sendBuffer = static_cast<char *>(calls[3].recvBuffer) + 4 * kCount;
  EXPECT_EQ(number({1, 2}), 4u);
  EXPECT_EQ(number({0, 2}), 3u);
}

TEST_F(Coalescing, TheOneHasWhatAllHaveInTheirOrder) {
  addMany(3);
  calls[0].count = 1; // 4 bytes, of 16
  calls[1].count = 4;
  calls[2].count = 5; // 20, of 32
  const CoalescedCall one = coalesce(pointers(), kWhere);
  EXPECT_EQ(one.call.kind, occlKindAllReduce);
  EXPECT_EQ(one.call.count, (16 + 16 + 32) / 4u);
  EXPECT_EQ(one.packed.inputBytes(), 64u);
  ASSERT_EQ(one.packed.calls().size(), 3u);
  EXPECT_EQ(one.packed.calls()[2].input, calls[2].sendBuffer);
  EXPECT_EQ(one.packed.calls()[2].output, calls[2].recvBuffer);
  EXPECT_EQ(one.packed.calls()[2].partBytes, 20u);
}

TEST_F(Coalescing, TheOneHasThePartsThatTheCollectiveHas) {
  addMany(2);
  for (occlCall_t &call : calls)
    call.kind = occlKindReduceScatter;
  const CoalescedCall one = coalesce(pointers(), {2, 3});
  EXPECT_EQ(one.packed.inputBytes(), 3 * 2 * 4 * kCount);
  EXPECT_EQ(one.packed.outputBytes(), 2 * 4 * kCount);
}

} // namespace
} // namespace occl::communicator
