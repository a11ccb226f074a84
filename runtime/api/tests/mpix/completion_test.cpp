// Wait and Test of mpix_occl.h for several requests: which end, which stay, what statuses say.
#include "runtime/api/tests/mpix/ranks.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace occl::mpix::testing {
namespace {

TEST(Several, EndTogether) {
  const Attached comm;
  const int rank = rankOf(comm);
  MPIX_Request requests[3] = {MPIX_REQUEST_NULL};
  std::vector<int> mine(100, rank), theirs(100, -1);
  EXPECT_EQ(
      MPIX_Psend_init(mine.data(), 100, 1, MPI_INT, 1 - rank, 0, comm, MPI_INFO_NULL, &requests[0]),
      MPI_SUCCESS);
  EXPECT_EQ(MPIX_Precv_init(theirs.data(), 10, 10, MPI_INT, 1 - rank, 0, comm, MPI_INFO_NULL,
                            &requests[1]),
            MPI_SUCCESS);
  MPI_Status statuses[3];
  EXPECT_EQ(MPIX_Startall(2, requests), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Pbuf_prepareall(2, requests), MPI_SUCCESS);
  std::vector<int> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(MPIX_Pready_list(100, all.data(), requests[0]), MPI_SUCCESS) << "more than 64";
  EXPECT_EQ(MPIX_Waitall(3, requests, statuses), MPI_SUCCESS) << "the third is none";
  EXPECT_EQ(statuses[1].MPI_SOURCE, 1 - rank);
  EXPECT_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(theirs, std::vector<int>(100, 1 - rank));
  EXPECT_EQ(MPIX_Startall(3, requests), MPI_ERR_REQUEST) << "the first two have been started";
  EXPECT_EQ(MPIX_Pready_range(0, 99, requests[0]), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(firstOf({MPIX_Request_free(&requests[0]), MPIX_Request_free(&requests[1])}),
            MPI_SUCCESS);
  EXPECT_EQ(requests[0], MPIX_REQUEST_NULL);
}

/// A send and two receives of each rank, with the other one.
class ThreeRequests : public ::testing::Test {
protected:
  ThreeRequests() {
    const auto peer = 1 - rank;
    MPIX_Psend_init(mine.data(), 4, 1, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &all[0]);
    MPIX_Precv_init(first.data(), 2, 2, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &all[1]);
    MPIX_Precv_init(second.data(), 1, 4, MPI_INT, peer, 1, comm, MPI_INFO_NULL, &all[2]);
    MPIX_Psend_init(mine.data(), 1, 4, MPI_INT, peer, 1, comm, MPI_INFO_NULL, &late);
  }
  ~ThreeRequests() override {
    for (MPIX_Request &request : all)
      EXPECT_EQ(MPIX_Request_free(&request), MPI_SUCCESS) << MPIX_Error_text();
  }
  /// Once both ranks have seen what there is to see without it.
  int sendLate() {
    MPI_Barrier(comm);
    return firstOf({MPIX_Start(&late), MPIX_Pready(0, late)});
  }
  void expectAllTested() {
    int flag = 0;
    while (!flag)
      ASSERT_EQ(MPIX_Testall(3, all, &flag, statuses), MPI_SUCCESS) << MPIX_Error_text();
  }

  const Attached comm;
  const int rank = rankOf(comm);
  std::vector<int> mine = std::vector<int>(4, rank), first = std::vector<int>(4, -1),
                   second = first;
  MPIX_Request all[3] = {}; // both receives, and the send of the first
  Request late;             // the send of the second
  MPI_Status statuses[3] = {};
};

TEST_F(ThreeRequests, TestedTogetherEndTogether) {
  int flag = 1;
  EXPECT_EQ(MPIX_Testall(3, all, &flag, statuses), MPI_SUCCESS);
  EXPECT_EQ(flag, 1) << "none has an epoch";
  ASSERT_EQ(firstOf({MPIX_Startall(3, all), MPIX_Pready_range(0, 3, all[0])}), MPI_SUCCESS);
  // The first two get over, and keep their epochs, as the third's send has not been started.
  for (int looks = 0; looks < 1000 || first != std::vector<int>(4, 1 - rank); ++looks)
    ASSERT_EQ(firstOf({MPIX_Testall(3, all, &flag, statuses), flag}), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Start(&all[1]), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Request_free(&all[1]), MPI_ERR_REQUEST) << "its epoch is to be waited for";
  // It is active until it is taken: the peer has started, and all has arrived.
  EXPECT_EQ(MPIX_Pbuf_prepareall(2, all), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(firstOf({MPIX_Parrived(all[1], 1, &flag), 1 - flag}), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Parrived(all[1], 2, &flag), MPI_ERR_ARG);
  ASSERT_EQ(firstOf({sendLate(), MPIX_Wait(&late, MPI_STATUS_IGNORE)}), MPI_SUCCESS);
  expectAllTested();
  EXPECT_EQ(statuses[1].MPI_SOURCE, 1 - rank);
  EXPECT_EQ(statuses[2].MPI_TAG, 1);
  EXPECT_EQ(second, first);
}

TEST_F(ThreeRequests, AreTakenOneByOneAsTheyEnd) {
  int index = 0, flag = 0;
  EXPECT_EQ(MPIX_Waitany(3, all, &index, statuses), MPI_SUCCESS);
  EXPECT_EQ(index, MPI_UNDEFINED) << "none has an epoch";
  ASSERT_EQ(firstOf({MPIX_Startall(3, all), MPIX_Pready_range(0, 3, all[0])}), MPI_SUCCESS);
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(MPIX_Waitany(3, all, &index, statuses), MPI_SUCCESS);
    sum += index;
    if (index == 1) {
      EXPECT_EQ(statuses[0].MPI_SOURCE, 1 - rank);
    }
  }
  EXPECT_EQ(sum, 1) << "the send and the first receive";
  EXPECT_EQ(MPIX_Testany(3, all, &index, &flag, statuses), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(index, MPI_UNDEFINED);
  ASSERT_EQ(sendLate(), MPI_SUCCESS);
  while (!flag)
    ASSERT_EQ(MPIX_Testany(3, all, &index, &flag, statuses), MPI_SUCCESS);
  EXPECT_EQ(index, 2);
  EXPECT_EQ(MPIX_Wait(&late, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

TEST_F(ThreeRequests, AreTakenAsManyAsHaveEnded) {
  int ended = 0, taken = 0, indices[3] = {};
  EXPECT_EQ(MPIX_Waitsome(3, all, &ended, indices, statuses), MPI_SUCCESS);
  EXPECT_EQ(ended, MPI_UNDEFINED) << "none has an epoch";
  ASSERT_EQ(firstOf({MPIX_Startall(3, all), MPIX_Pready_range(0, 3, all[0])}), MPI_SUCCESS);
  for (; taken < 2; taken += ended) {
    ASSERT_EQ(MPIX_Waitsome(3, all, &ended, indices, statuses), MPI_SUCCESS);
    for (int i = 0; i < ended; ++i) {
      EXPECT_NE(indices[i], 2) << "its send has not been started";
      if (indices[i] == 1) {
        EXPECT_EQ(statuses[i].MPI_SOURCE, 1 - rank) << "the status is that of the index";
      }
    }
  }
  EXPECT_EQ(MPIX_Testsome(3, all, &ended, indices, statuses), MPI_SUCCESS);
  EXPECT_EQ(ended, 0);
  ASSERT_EQ(firstOf({sendLate(), MPIX_Wait(&late, MPI_STATUS_IGNORE),
                     MPIX_Wait(&all[2], MPI_STATUS_IGNORE)}),
            MPI_SUCCESS);
}

TEST(Several, SayWhichFailedWhicheverWayTheyAreAsked) {
  const auto ask = [](const auto &way) {
    const Attached comm(300);
    MPIX_Request requests[2] = {MPIX_REQUEST_NULL, MPIX_REQUEST_NULL};
    int value = 0;
    MPIX_Precv_init(&value, 1, 1, MPI_INT, 1 - rankOf(comm), 0, comm, MPI_INFO_NULL, &requests[1]);
    EXPECT_EQ(MPIX_Start(&requests[1]), MPI_SUCCESS);
    way(requests);
    EXPECT_TRUE(hasText("epoch 1")) << MPIX_Error_text();
    int flag = 0;
    EXPECT_EQ(MPIX_Test(&requests[1], &flag, MPI_STATUS_IGNORE), MPI_SUCCESS) << "it has ended";
    EXPECT_EQ(MPIX_Request_free(&requests[1]), MPI_SUCCESS);
  };
  MPI_Status statuses[2];
  int flag = 0, index = 0, ended = 0, indices[2];
  ask([&](MPIX_Request *requests) {
    int code = MPI_SUCCESS;
    while (!flag)
      code = MPIX_Testall(2, requests, &flag, statuses);
    EXPECT_EQ(code, MPI_ERR_IN_STATUS);
    EXPECT_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQ(statuses[1].MPI_ERROR, MPI_ERR_OTHER);
  });
  ask([&](MPIX_Request *requests) {
    EXPECT_EQ(MPIX_Waitany(2, requests, &index, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    EXPECT_EQ(index, 1);
  });
  ask([&](MPIX_Request *requests) {
    EXPECT_EQ(MPIX_Waitsome(2, requests, &ended, indices, statuses), MPI_ERR_IN_STATUS);
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(indices[0], 1);
    EXPECT_EQ(statuses[0].MPI_ERROR, MPI_ERR_OTHER);
  });
}

/// What a test of all has found is told later, though another call has failed in between.
TEST(Several, KeepTheReasonOfAFailureTheyWereNotAskedFor) {
  const Attached failing(300), comm;
  const int peer = 1 - rankOf(comm);
  MPIX_Request requests[2] = {MPIX_REQUEST_NULL, MPIX_REQUEST_NULL};
  Request send;
  int value = 0, other = 0, flag = 0;
  ASSERT_EQ(
      firstOf(
          {MPIX_Precv_init(&value, 1, 1, MPI_INT, peer, 0, failing, MPI_INFO_NULL, &requests[0]),
           MPIX_Precv_init(&value, 1, 1, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &requests[1]),
           MPIX_Psend_init(&other, 1, 1, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &send),
           MPIX_Startall(2, requests)}),
      MPI_SUCCESS);
  while (!requests[0]->isOver)
    ASSERT_EQ(firstOf({MPIX_Testall(2, requests, &flag, MPI_STATUSES_IGNORE), flag}), MPI_SUCCESS);
  MPI_Barrier(comm);
  EXPECT_EQ(MPIX_Pready(7, send), MPI_ERR_REQUEST);
  EXPECT_FALSE(hasText("epoch 1")) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  EXPECT_TRUE(hasText("epoch 1")) << MPIX_Error_text();
  ASSERT_EQ(firstOf({MPIX_Start(&send), MPIX_Pready(0, send), MPIX_Wait(&send, MPI_STATUS_IGNORE),
                     MPIX_Waitall(2, requests, MPI_STATUSES_IGNORE)}),
            MPI_SUCCESS);
  for (MPIX_Request &request : requests)
    EXPECT_EQ(MPIX_Request_free(&request), MPI_SUCCESS);
}

/// What a test of all has found over is as it was, though the communicator has failed since.
TEST(Several, HaveWhatArrivedBeforeAFailure) {
  const Attached comm;
  const int rank = rankOf(comm), peer = 1 - rank;
  MPIX_Request requests[2] = {MPIX_REQUEST_NULL, MPIX_REQUEST_NULL};
  Request send;
  int in = -1, never = -1, flag = 0;
  ASSERT_EQ(
      firstOf({MPIX_Precv_init(&in, 1, 1, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &requests[0]),
               MPIX_Precv_init(&never, 1, 1, MPI_INT, peer, 1, comm, MPI_INFO_NULL, &requests[1]),
               MPIX_Psend_init(&rank, 1, 1, MPI_INT, peer, 0, comm, MPI_INFO_NULL, &send),
               MPIX_Startall(2, requests), MPIX_Start(&send), MPIX_Pready(0, send),
               MPIX_Wait(&send, MPI_STATUS_IGNORE)}),
      MPI_SUCCESS)
      << MPIX_Error_text();
  int code = MPI_SUCCESS;
  while (!requests[0]->isOver && code == MPI_SUCCESS)
    code = MPIX_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  ASSERT_EQ(firstOf({code, requests[0]->code}), MPI_SUCCESS) << MPIX_Error_text();
  MPI_Barrier(comm);
  if (rank == 0) {
    EXPECT_EQ(occlCommAbort(requests[0]->at->occl), occlSuccess);
  }
  EXPECT_EQ(MPIX_Wait(&requests[1], MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  EXPECT_EQ(firstOf({MPIX_Parrived(requests[0], 0, &flag), 1 - flag}), MPI_SUCCESS)
      << MPIX_Error_text();
  EXPECT_EQ(MPIX_Pbuf_prepare(requests[0]), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Parrived(requests[0], 1, &flag), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(in, peer);
  for (MPIX_Request &request : requests)
    EXPECT_EQ(MPIX_Request_free(&request), MPI_SUCCESS) << MPIX_Error_text();
}

TEST(Several, SayWhichFailed) {
  const Attached comm(300);
  MPIX_Request requests[2] = {MPIX_REQUEST_NULL, MPIX_REQUEST_NULL};
  int value = 0;
  MPI_Status statuses[2];
  EXPECT_EQ(MPIX_Precv_init(&value, 1, 1, MPI_INT, 1 - rankOf(comm), 0, comm, MPI_INFO_NULL,
                            &requests[1]),
            MPI_SUCCESS);
  EXPECT_EQ(MPIX_Start(&requests[1]), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
  EXPECT_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(statuses[1].MPI_ERROR, MPI_ERR_OTHER);
  EXPECT_TRUE(hasText("epoch 1")) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Start(&requests[1]), MPI_ERR_OTHER) << "it has failed for good";
  EXPECT_EQ(MPIX_Request_free(&requests[1]), MPI_SUCCESS);
}

} // namespace
} // namespace occl::mpix::testing
