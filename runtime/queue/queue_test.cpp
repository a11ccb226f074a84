#include "runtime/queue/completion_queue.h"
#include "runtime/queue/submission_queue.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace occl::queue {
namespace {

TEST(SubmissionQueue, FirstInFirstOutAndRefusesWhenFull) {
  SubmissionQueue<uint64_t> queue(4);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), std::nullopt);
  for (uint64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(queue.push(i));
  EXPECT_FALSE(queue.push(4));
  EXPECT_EQ(queue.pop(), 0u);
  EXPECT_TRUE(queue.push(4));
  for (uint64_t i = 1; i <= 4; ++i)
    EXPECT_EQ(queue.pop(), i);
  EXPECT_TRUE(queue.empty());
}

TEST(CompletionQueue, FirstInFirstOutAndRefusesWhenFull) {
  CompletionQueue<uint64_t> queue(4);
  EXPECT_EQ(queue.pop(), std::nullopt);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 4; ++i)
      EXPECT_TRUE(queue.push(i));
    EXPECT_FALSE(queue.push(4));
    for (uint64_t i = 0; i < 4; ++i)
      EXPECT_EQ(queue.pop(), i);
    EXPECT_EQ(queue.pop(), std::nullopt);
  }
}

/// numProducers threads push kEach numbers each, numConsumers pop until all are there; every number
/// arrives once.
template <class Queue> void everyEntryArrivesOnce(unsigned numProducers, unsigned numConsumers) {
  constexpr uint64_t kEach = 20000;
  Queue queue(64);
  const uint64_t total = numProducers * kEach;
  std::vector<std::atomic<uint32_t>> seen(total);
  std::atomic<uint64_t> arrived{0};
  std::vector<std::thread> threads;
  for (unsigned p = 0; p < numProducers; ++p)
    threads.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach; ++i)
        while (!queue.push(p * kEach + i))
          std::this_thread::yield();
    });
  for (unsigned c = 0; c < numConsumers; ++c)
    threads.emplace_back([&] {
      while (arrived.load() < total) {
        if (auto entry = queue.pop()) {
          seen[*entry].fetch_add(1);
          arrived.fetch_add(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &count : seen)
    ASSERT_EQ(count.load(), 1u);
}

TEST(SubmissionQueue, OneProducerManyConsumers) {
  everyEntryArrivesOnce<SubmissionQueue<uint64_t>>(1, 3);
}

TEST(CompletionQueue, ManyProducersManyConsumers) {
  everyEntryArrivesOnce<CompletionQueue<uint64_t>>(3, 3);
}

} // namespace
} // namespace occl::queue
