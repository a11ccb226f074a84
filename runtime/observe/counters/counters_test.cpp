#include "runtime/observe/counters/counters.h"

#include <gtest/gtest.h>

namespace occl::insight {
namespace {

uint64_t count(const BlockCounters &counters, WaitReason reason) {
  return counters.waits[static_cast<size_t>(reason)].count.get();
}

uint64_t ticksOf(const BlockCounters &counters, WaitReason reason) {
  return counters.waits[static_cast<size_t>(reason)].ticks.get();
}

TEST(Counter, AddsAndRaises) {
  Counter counter;
  counter.add(3);
  counter.raise(2);
  EXPECT_EQ(counter.get(), 3u);
  counter.raise(7);
  counter.add(1);
  EXPECT_EQ(counter.get(), 8u);
}

TEST(BlockMeter, AWaitLastsFromTheFirstLookToTheOneThatFindsItOver) {
  BlockCounters counters;
  BlockMeter meter(&counters);
  meter.visit(4);
  EXPECT_FALSE(meter.blocked({WaitReason::Data, 2, 1}, 100));
  EXPECT_EQ(meter.present().from, 100u);
  meter.preempted();
  meter.visit(2);
  EXPECT_FALSE(meter.blocked({WaitReason::Data, 2, 1}, 150)) << "still the same wait";
  EXPECT_EQ(count(counters, WaitReason::Data), 0u);
  BlockMeter::Span ended = meter.ran(5, 180, 200);
  meter.saved();
  EXPECT_TRUE(ended);
  EXPECT_EQ(ended.from, 100u);
  EXPECT_EQ(ended.to, 180u);
  EXPECT_EQ(meter.present().from, 0u);
  EXPECT_EQ(count(counters, WaitReason::Data), 1u);
  EXPECT_EQ(ticksOf(counters, WaitReason::Data), 80u);
  EXPECT_EQ(counters.runningTicks.get(), 20u);
  EXPECT_EQ(counters.slices.get(), 5u);
  EXPECT_EQ(counters.contextLoads.get(), 2u);
  EXPECT_EQ(counters.contextSaves.get(), 1u);
  EXPECT_EQ(counters.preemptions.get(), 1u);
  EXPECT_EQ(counters.queueLengths.get(), 6u);
  EXPECT_EQ(counters.longestQueue.get(), 4u);
}

TEST(BlockMeter, AWaitForSomethingElseIsAnother) {
  BlockCounters counters;
  BlockMeter meter(&counters);
  EXPECT_FALSE(meter.blocked({WaitReason::Announce, 2, 1}, 10));
  BlockMeter::Span ended = meter.blocked({WaitReason::Data, 2, 1}, 30);
  EXPECT_EQ(ended.wait.reason, WaitReason::Announce);
  EXPECT_EQ(ended.to - ended.from, 20u);
  EXPECT_EQ(meter.present().from, 30u);
  EXPECT_TRUE(meter.blocked({WaitReason::Data, 2, 5}, 35)) << "from another rank";
  EXPECT_TRUE(meter.ran(1, 45, 50));
  EXPECT_EQ(count(counters, WaitReason::Data), 2u);
  EXPECT_EQ(ticksOf(counters, WaitReason::Announce), 20u);
  EXPECT_EQ(ticksOf(counters, WaitReason::Data), 15u);
}

TEST(BlockMeter, CountersOfTwoProcessorsMayDiffer) {
  BlockCounters counters;
  BlockMeter meter(&counters);
  meter.blocked({WaitReason::Credit, 2, 1}, 100);
  BlockMeter::Span ended = meter.ran(1, 98, 97);
  EXPECT_EQ(ended.to, ended.from);
  EXPECT_EQ(ticksOf(counters, WaitReason::Credit), 0u);
  EXPECT_EQ(counters.runningTicks.get(), 0u);
}

} // namespace
} // namespace occl::insight
