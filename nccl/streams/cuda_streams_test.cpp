// How groups are put into CUDA's streams, as far as no device is needed: by transfers of ranks on
// hosts, which are of no stream.
#include "nccl/comm/handles.h"
#include "nccl/streams/streams.h"
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <array>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

/// Of a number with the rank itself.
Batch batchOf(ncclComm_t handle, std::array<int, 2> &numbers, uint32_t peer) {
  Batch batch;
  EXPECT_TRUE(find(handle, batch.comm).ok());
  for (const auto kind : {OperationKind::Send, OperationKind::Receive}) {
    Operation operation;
    operation.kind = kind;
    operation.peer = peer;
    operation.call.count = 1;
    operation.call.dataType = occlInt32;
    operation.call.sendBuffer = &numbers[0];
    operation.call.recvBuffer = &numbers[1];
    batch.add(operation);
  }
  return batch;
}

} // namespace

TEST(Transfers, OfSeveralCommunicatorsAreBegunTogether) {
  Ranks first(1), second(1);
  std::array<int, 2> a = {1, 0}, b = {2, 0};
  bounded([&] {
    std::array<Batch, 2> batches = {batchOf(first[0], a, 0), batchOf(second[0], b, 0)};
    EXPECT_TRUE(cudaStreams().launch(batches).ok());
    EXPECT_EQ(a[1], 1);
    EXPECT_EQ(b[1], 2);
  });
}

/// Nothing of the group begins, so peers of all of its communicators would wait. Each says why.
TEST(Transfers, OfACommunicatorBesideOneThatIsRefusedFailIt) {
  for (const bool isFirst : {true, false}) {
    Ranks refused(1), beside(1);
    std::array<int, 2> a = {1, 0}, b = {2, 0};
    bounded([&] {
      std::array<Batch, 2> batches = {batchOf(refused[0], a, 7), batchOf(beside[0], b, 0)};
      if (!isFirst)
        std::swap(batches[0], batches[1]);
      EXPECT_EQ(cudaStreams().launch(batches).result, ncclInvalidArgument);
      EXPECT_EQ(b[1], 0);
      const std::string_view others = "another communicator's transfer in the group was refused";
      for (const Batch &batch : batches) {
        const Outcome failure = batch.comm->asyncError();
        EXPECT_EQ(failure.result, ncclInvalidArgument) << failure.text;
        const bool isOfOthers = failure.text.find(others) != std::string::npos;
        EXPECT_EQ(isOfOthers, batch.transfers[0].peer == 0) << failure.text;
      }
    });
  }
}

/// One that has failed before is left out; the transfers of the others take place.
TEST(Transfers, OfACommunicatorBesideOneThatHasFailedTakePlace) {
  Ranks failed(1), other(1);
  std::array<int, 2> a = {1, 0}, b = {2, 0};
  bounded([&] {
    std::array<Batch, 2> batches = {batchOf(failed[0], a, 0), batchOf(other[0], b, 0)};
    batches[0].comm->fail({ncclSystemError, "in a test"});
    EXPECT_EQ(cudaStreams().launch(batches).result, ncclSystemError);
    EXPECT_EQ(a[1], 0);
    EXPECT_EQ(b[1], 2);
    EXPECT_TRUE(batches[1].comm->asyncError().ok());
  });
}
