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

TEST_F(Coalescing, WhatRanksMustCallAlikeEndsTheRun) {
  using Change = void (*)(occlCall_t &);
  const Change changes[] = {[](occlCall_t &call) { call.kind = occlKindReduce; },
                            [](occlCall_t &call) { call.dataType = occlFloat16; },
                            [](occlCall_t &call) { call.op = occlMax; },
                            [](occlCall_t &call) { call.root = 1; },
                            [](occlCall_t &call) { call.timeoutMs = 100; },
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

TEST_F(Coalescing, BuffersThatARankHasNotCountForNothing) {
  addMany(3);
  for (occlCall_t &call : calls) {
    call.kind = occlKindBroadcast;
    call.sendBuffer = calls[0].recvBuffer;
  }
  EXPECT_EQ(number({1, 2}), 3u);
  EXPECT_EQ(number({0, 2}), 1u) << "the root reads what the first call writes";
}

TEST_F(Coalescing, ARootThatThereIsNotIsForTheCallToRefuse) {
  addMany(3);
  for (occlCall_t &call : calls) {
    call.kind = occlKindBroadcast;
    call.root = 2;
  }
  EXPECT_EQ(number(), 1u);
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

TEST_F(Coalescing, TheOneHasThePartsThatTheRankHas) {
  addMany(2);
  for (occlCall_t &call : calls)
    call.kind = occlKindGather;
  const CoalescedCall root = coalesce(pointers(), {0, 3}), other = coalesce(pointers(), {2, 3});
  EXPECT_EQ(root.packed.outputBytes(), 3 * 2 * 4 * kCount);
  EXPECT_EQ(other.packed.outputBytes(), 0u);
  EXPECT_EQ(other.packed.inputBytes(), 2 * 4 * kCount);
  EXPECT_EQ(root.call.count, other.call.count);
}

} // namespace
} // namespace occl::communicator
