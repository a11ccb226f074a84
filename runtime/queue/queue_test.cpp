#include "runtime/queue/bounded_ring.h"
#include "runtime/queue/completion_queue.h"
#include "runtime/queue/submission_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace occl::queue {
namespace {

template <class Queue> void firstInFirstOutAndRefusesWhenFull() {
  Queue queue(4);
  EXPECT_EQ(queue.pop(), std::nullopt);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 4; ++i)
      EXPECT_TRUE(queue.push(i));
    EXPECT_FALSE(queue.push(4));
    EXPECT_EQ(queue.pop(), 0u);
    EXPECT_TRUE(queue.push(4));
    for (uint64_t i = 1; i <= 4; ++i)
      EXPECT_EQ(queue.pop(), i);
    EXPECT_EQ(queue.pop(), std::nullopt);
  }
}

TEST(SubmissionQueue, FirstInFirstOutAndRefusesWhenFull) {
  firstInFirstOutAndRefusesWhenFull<SubmissionQueue<uint64_t>>();
  EXPECT_TRUE(SubmissionQueue<uint64_t>(4).empty());
}

TEST(BoundedRing, FirstInFirstOutAndRefusesWhenFull) {
  firstInFirstOutAndRefusesWhenFull<BoundedRing<uint64_t>>();
}

/// numProducers threads push the numbers from 1 to `total` with push(number), numConsumers take
/// them with pop(), which gives 0 for nothing; every number arrives once.
void everyNumberArrivesOnce(uint32_t total, unsigned numProducers, unsigned numConsumers,
                            const std::function<bool(uint32_t)> &push,
                            const std::function<uint32_t()> &pop) {
  std::vector<std::atomic<uint32_t>> seen(total + 1);
  std::atomic<uint32_t> arrived{0};
  std::vector<std::thread> threads;
  for (unsigned p = 0; p < numProducers; ++p)
    threads.emplace_back([&, p] {
      for (uint32_t number = p + 1; number <= total; number += numProducers)
        while (!push(number))
          std::this_thread::yield();
    });
  for (unsigned c = 0; c < numConsumers; ++c)
    threads.emplace_back([&] {
      while (arrived.load() < total) {
        if (uint32_t number = pop()) {
          seen[number].fetch_add(1);
          arrived.fetch_add(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t number = 1; number <= total; ++number)
    ASSERT_EQ(seen[number].load(), 1u) << number;
  EXPECT_EQ(pop(), 0u);
}

constexpr uint32_t kTotal = 20000;

TEST(SubmissionQueue, OneProducerManyConsumersInTurn) {
  SubmissionQueue<uint64_t> queue(64);
  std::mutex consuming;
  everyNumberArrivesOnce(
      kTotal, 1, 3, [&](uint32_t number) { return queue.push(number); },
      [&] {
        std::lock_guard lock(consuming);
        return static_cast<uint32_t>(queue.pop().value_or(0));
      });
}

TEST(BoundedRing, ManyProducersManyConsumers) {
  BoundedRing<uint64_t> queue(64);
  everyNumberArrivesOnce(
      kTotal, 3, 3, [&](uint32_t number) { return queue.push(number); },
      [&] { return static_cast<uint32_t>(queue.pop().value_or(0)); });
}

class CompletionQueueForms : public testing::TestWithParam<CompletionForm> {};

INSTANTIATE_TEST_SUITE_P(All, CompletionQueueForms,
                         testing::Values(CompletionForm::Ring, CompletionForm::PackedRing,
                                         CompletionForm::Slots));

/// Counters whose low halves wrap around while the test runs.
constexpr uint64_t kBeforeWrap = (uint64_t{7} << 32) - 5;

TEST_P(CompletionQueueForms, HoldsWhatItSaysAndRefusesWhenFull) {
  for (uint64_t start : {uint64_t{0}, kBeforeWrap, ~uint64_t{0} - 5}) {
    auto queue = makeCompletionQueue(GetParam(), 4, start);
    EXPECT_EQ(queue->pop(), std::nullopt);
    for (uint32_t round = 0; round < 5; ++round) {
      for (uint32_t i = 1; i <= 4; ++i)
        EXPECT_TRUE(queue->push(10 * round + i));
      EXPECT_FALSE(queue->push(99));
      std::vector<uint32_t> got;
      while (auto entry = queue->pop())
        got.push_back(*entry);
      if (GetParam() == CompletionForm::Slots)
        std::sort(got.begin(), got.end());
      EXPECT_EQ(got, (std::vector<uint32_t>{10 * round + 1, 10 * round + 2, 10 * round + 3,
                                            10 * round + 4}));
    }
  }
}

TEST_P(CompletionQueueForms, ASlotIsUsedAgainAsSoonAsItIsEmpty) {
  auto queue = makeCompletionQueue(GetParam(), 2, kBeforeWrap);
  ASSERT_TRUE(queue->push(1));
  for (uint32_t i = 2; i < 40; ++i) {
    EXPECT_TRUE(queue->push(i));
    EXPECT_FALSE(queue->push(99));
    EXPECT_TRUE(queue->pop().has_value());
  }
}

TEST_P(CompletionQueueForms, ManyProducersOneConsumer) {
  auto queue = makeCompletionQueue(GetParam(), 64, kBeforeWrap);
  everyNumberArrivesOnce(
      kTotal, 4, 1, [&](uint32_t number) { return queue->push(number); },
      [&] { return queue->pop().value_or(0); });
}

TEST_P(CompletionQueueForms, TheConsumerMayChangeFromThreadToThread) {
  auto queue = makeCompletionQueue(GetParam(), 16);
  std::mutex consumer;
  everyNumberArrivesOnce(
      kTotal, 2, 2, [&](uint32_t number) { return queue->push(number); },
      [&] {
        std::lock_guard lock(consumer);
        return queue->pop().value_or(0);
      });
}

} // namespace
} // namespace occl::queue
