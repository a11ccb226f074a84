// Who has the memory of a large group's parts, and until when.
#include "runtime/cuda/transfer/part_lists.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <vector>

namespace occl::cuda {
namespace {

using namespace testing;

TEST(PartLists, ListsThatAGraphDoesNotTakeAreGivenBack) {
  auto list = PartList::make({});
  ASSERT_TRUE(list.ok());
  for (const char *call : {"cudaUserObjectCreate", "cudaGraphRetainUserObject"}) {
    resetHostCuda();
    failCall(call, cudaErrorMemoryAllocation);
    EXPECT_EQ(keepWithGraph(*list, nullptr).code(), StatusCode::SystemError);
    EXPECT_EQ((*list).use_count(), 1) << call;
  }
  // A graph that takes it, and goes at once.
  EXPECT_TRUE(keepWithGraph(*list, nullptr).ok());
  EXPECT_EQ((*list).use_count(), 1);
}

/// While nothing more can be pinned.
std::vector<std::shared_ptr<PartList>> takeAll(const std::vector<TransferPart> &parts) {
  std::vector<std::shared_ptr<PartList>> taken;
  for (;;) {
    failCall("cudaHostAlloc", cudaErrorMemoryAllocation);
    auto made = PartList::make(parts);
    if (!made.ok())
      return taken;
    taken.push_back(std::move(*made));
  }
}

TEST(PartLists, ReservedListsNeedNoCallOfCuda) {
  resetHostCuda();
  ASSERT_TRUE(PartList::reserve(5).ok());
  ASSERT_TRUE(PartList::reserve(5).ok()) << "which has them already";
  std::vector<TransferPart> parts(1024);
  parts.back().count = 7;
  const auto taken = takeAll(parts);
  EXPECT_EQ(taken.size(), 5u);
  for (const auto &list : taken) {
    EXPECT_EQ(list->parts()[1023].count, 7u);
    EXPECT_EQ(*list->over(), 0u) << "another one's parts lie there";
  }
}

/// One waits in its stream for another rank, and those of other streams end.
TEST(PartLists, OfKernelsThatAreOverAreGivenBackBeforeOlderOnes) {
  resetHostCuda();
  ASSERT_TRUE(PartList::reserve(3).ok());
  auto all = takeAll({});
  ASSERT_GE(all.size(), 3u);
  PartListsInFlight inFlight;
  for (auto &list : all)
    inFlight.add(list);
  *all[1]->over() = 1;
  *all[2]->over() = 1;
  const uint64_t number = all.size();
  all.clear();
  inFlight.giveBack();
  EXPECT_EQ(takeAll({}).size(), 2u) << "of " << number;
  inFlight.giveBack();
  EXPECT_EQ(takeAll({}).size(), 2u);
}

} // namespace
} // namespace occl::cuda
