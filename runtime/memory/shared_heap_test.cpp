#include "runtime/memory/shared_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace occl::transport {
namespace {

TEST(SharedHeap, HandsOutAndTakesBack) {
  std::vector<std::byte> memory(1 << 16);
  SharedHeap heap(memory);
  void *first = heap.allocate(1000), *second = heap.allocate(0);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ((static_cast<std::byte *>(first) - memory.data()) % 128, 0);
  std::memset(first, 1, 1000);
  EXPECT_NE(first, second);
  EXPECT_FALSE(heap.release(static_cast<char *>(first) + 128)) << "no block begins there";
  EXPECT_TRUE(heap.release(first));
  EXPECT_FALSE(heap.release(first)) << "twice";
  EXPECT_FALSE(heap.release(nullptr));
  EXPECT_TRUE(heap.release(second));
  void *all = heap.allocate(1 << 16);
  EXPECT_NE(all, nullptr) << "what came back is whole again";
  EXPECT_EQ(heap.allocate(1), nullptr);
}

TEST(SharedHeap, RefusesWhatIsLargerThanItself) {
  std::vector<std::byte> memory(1 << 12);
  SharedHeap heap(memory);
  for (uint64_t bytes : {uint64_t(4097), uint64_t(1) << 63, ~uint64_t(0)})
    EXPECT_EQ(heap.allocate(bytes), nullptr);
  SharedHeap none({});
  EXPECT_EQ(none.allocate(1), nullptr);
}

TEST(SharedHeap, KnowsWhatLiesInIt) {
  std::vector<std::byte> memory(4096);
  SharedHeap heap(memory);
  EXPECT_EQ(heap.offsetOf(memory.data() + 10, 100), 10u);
  EXPECT_EQ(heap.offsetOf(memory.data() + 10, 4096), std::nullopt) << "its end does not";
  EXPECT_EQ(heap.offsetOf(memory.data() + 10, ~uint64_t(0)), std::nullopt);
  EXPECT_EQ(heap.offsetOf(memory.data() - 1, 1), std::nullopt);
  int other = 0;
  EXPECT_EQ(heap.offsetOf(&other, 1), std::nullopt);
}

} // namespace
} // namespace occl::transport
