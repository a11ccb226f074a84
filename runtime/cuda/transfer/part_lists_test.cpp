// Who has the memory of a large group's parts, and until when.
#include "runtime/cuda/transfer/part_lists.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

using namespace testing;

TEST(PartLists, WhatAGraphDoesNotTakeIsGivenBack) {
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

} // namespace
} // namespace occl::cuda
