#include "runtime/cuda/partitioned/mark_choice.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

/// Partitions of so many bytes.
partitioned::Shape shapeOf(uint64_t partitions, uint64_t bytes, uint64_t perMessage = 1) {
  return {partitions, bytes, DataType::Uint8, perMessage};
}

TEST(MarkChoice, CopiesOnceTheReceiverIsKnownToHaveStarted) {
  MarkChoice choice(shapeOf(8, kCopiedBytes));
  EXPECT_EQ(choice.choose({0, 1}, 0), MarkBy::Kernel) << "there is no epoch";
  choice.started();
  EXPECT_EQ(choice.choose({0, 1}, 0), MarkBy::Kernel) << "it may not have started";
  EXPECT_EQ(choice.choose({1, 3}, 1), MarkBy::CopyEngine);
  choice.started();
  EXPECT_EQ(choice.choose({1, 3}, 1), MarkBy::Kernel) << "it has started the last epoch";
  EXPECT_EQ(choice.choose({3, 4}, 2), MarkBy::CopyEngine);
  EXPECT_EQ(choice.choose({4, 5}, 3), MarkBy::Kernel) << "starts that the host does not know of";
}

TEST(MarkChoice, CopiesFromSomeSizeOnWhatOneCallMarks) {
  MarkChoice choice(shapeOf(64, kCopiedBytes / 4));
  choice.started();
  EXPECT_EQ(choice.choose({0, 3}, 1), MarkBy::Kernel);
  EXPECT_EQ(choice.choose({3, 7}, 1), MarkBy::CopyEngine);
  MarkChoice small(shapeOf(1, kCopiedBytes - 1));
  small.started();
  EXPECT_EQ(small.choose({0, 1}, 1), MarkBy::Kernel);
  EXPECT_EQ(small.choose({0, 1}, 1), MarkBy::Kernel) << "the second mark is found by the device";
}

TEST(MarkChoice, CopiesWholeMessages) {
  MarkChoice choice(shapeOf(11, kCopiedBytes, 4));
  choice.started();
  EXPECT_EQ(choice.choose({0, 3}, 1), MarkBy::Kernel);
  EXPECT_EQ(choice.choose({3, 8}, 1), MarkBy::Kernel);
  EXPECT_EQ(choice.choose({8, 11}, 1), MarkBy::CopyEngine) << "the last one has three";
  choice.started();
  EXPECT_EQ(choice.choose({1, 4}, 2), MarkBy::Kernel);
  EXPECT_EQ(choice.choose({4, 8}, 2), MarkBy::CopyEngine);
}

TEST(MarkChoice, PartitionsMarkedAlreadyAreNotCopied) {
  MarkChoice choice(shapeOf(4, kCopiedBytes));
  choice.started();
  EXPECT_EQ(choice.choose({2, 3}, 0), MarkBy::Kernel);
  EXPECT_EQ(choice.choose({1, 4}, 1), MarkBy::Kernel) << "a kernel finds that it is misused";
  EXPECT_EQ(choice.choose({0, 1}, 1), MarkBy::CopyEngine);
  choice.started();
  EXPECT_EQ(choice.choose({0, 4}, 2), MarkBy::CopyEngine);
}

/// The copy may not have ended, so the second mark would be found to be the first.
TEST(MarkChoice, ASecondMarkOfACopyIsForNobody) {
  MarkChoice choice(shapeOf(4, kCopiedBytes));
  choice.started();
  EXPECT_EQ(choice.choose({1, 3}, 1), MarkBy::CopyEngine);
  EXPECT_EQ(choice.choose({2, 3}, 1), MarkBy::Nobody);
  EXPECT_EQ(choice.choose({0, 4}, 1), MarkBy::Nobody);
  choice.started();
  EXPECT_EQ(choice.choose({1, 2}, 1), MarkBy::Kernel);
}

TEST(MarkChoice, NothingIsCopiedWhereKernelsMayMark) {
  MarkChoice choice(shapeOf(4, kCopiedBytes));
  choice.started();
  choice.loseSight();
  EXPECT_EQ(choice.choose({0, 4}, 1), MarkBy::Kernel);
  choice.started();
  EXPECT_EQ(choice.choose({0, 4}, 2), MarkBy::Kernel);

  MarkChoice late(shapeOf(4, kCopiedBytes));
  late.started();
  EXPECT_EQ(late.choose({0, 4}, 1), MarkBy::CopyEngine);
  late.loseSight();
  EXPECT_EQ(late.choose({0, 4}, 1), MarkBy::Kernel) << "a replay has begun another epoch, maybe";
}

TEST(MarkChoice, PartitionsThatCouldNotBeCopiedAreMarkedAgain) {
  MarkChoice choice(shapeOf(4, kCopiedBytes));
  choice.started();
  EXPECT_EQ(choice.choose({1, 3}, 1), MarkBy::CopyEngine);
  choice.takeBack({1, 3});
  EXPECT_EQ(choice.choose({0, 4}, 1), MarkBy::CopyEngine);
}

} // namespace
} // namespace occl::cuda
