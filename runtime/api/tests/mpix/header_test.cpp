// What mpix_occl.h has beyond the suite: communicators, MPI_PROC_NULL, hints, misuse.
#include "runtime/api/tests/mpix/ranks.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

extern "C" int runInC(MPI_Comm comm); // c_program.c

namespace occl::mpix::testing {
namespace {

TEST(Communicators, AreAttachedOnce) {
  MPI_Comm comm = MPI_COMM_NULL;
  Request request;
  int value = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  EXPECT_EQ(MPIX_Psend_init(&value, 1, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request),
            MPI_ERR_COMM);
  EXPECT_TRUE(hasText("MPIX_Comm_attach has not been called")) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Comm_detach(comm), MPI_ERR_COMM);
  EXPECT_EQ(MPIX_Comm_attach(comm, nullptr), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Comm_attach(comm, nullptr), MPI_ERR_COMM);
  EXPECT_EQ(MPIX_Comm_attach(MPI_COMM_NULL, nullptr), MPI_ERR_COMM);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  EXPECT_EQ(MPIX_Comm_detach(copy), MPI_ERR_COMM) << "a duplicate has none";
  MPI_Comm_free(&copy);
  EXPECT_EQ(MPIX_Comm_detach(comm), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Comm_attach(comm, nullptr), MPI_SUCCESS) << "again";
  MPI_Comm_free(&comm);
}

TEST(Communicators, HaveRanksOfTheirOwn) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rankOf(MPI_COMM_WORLD), 0, &mine);
  ASSERT_EQ(MPIX_Comm_attach(mine, nullptr), MPI_SUCCESS) << MPIX_Error_text();
  Request send, receive;
  std::array<int, 6> from{1, 2, 3, 4, 5, 6}, to{};
  EXPECT_EQ(MPIX_Psend_init(from.data(), 3, 2, MPI_INT, 0, 1, mine, MPI_INFO_NULL, &send),
            MPI_SUCCESS);
  EXPECT_EQ(MPIX_Precv_init(to.data(), 2, 3, MPI_INT, 0, 1, mine, MPI_INFO_NULL, &receive),
            MPI_SUCCESS);
  EXPECT_EQ(firstOf({MPIX_Start(&send), MPIX_Start(&receive), MPIX_Pready_range(0, 2, send),
                     MPIX_Wait(&receive, MPI_STATUS_IGNORE), MPIX_Wait(&send, MPI_STATUS_IGNORE)}),
            MPI_SUCCESS);
  EXPECT_EQ(from, to);
  EXPECT_EQ(firstOf({MPIX_Request_free(&send), MPIX_Request_free(&receive)}), MPI_SUCCESS);
  MPI_Comm_free(&mine);
}

/// As MPI has it: also with an epoch, and with others of their requests freed before.
TEST(Communicators, MayBeFreedBeforeTheirRequests) {
  for (const bool isDetached : {false, true}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ASSERT_EQ(MPIX_Comm_attach(comm, nullptr), MPI_SUCCESS) << MPIX_Error_text();
    const bool isSender = rankOf(comm) == 0;
    Request request;
    std::array<int, 4> values{};
    {
      Request first;
      EXPECT_EQ(MPIX_Psend_init(values.data(), 4, 1, MPI_INT, isSender ? 1 : 0, 9, comm,
                                MPI_INFO_NULL, &first),
                MPI_SUCCESS);
    }
    EXPECT_EQ(
        isSender
            ? MPIX_Psend_init(values.data(), 4, 1, MPI_INT, 1, 0, comm, MPI_INFO_NULL, &request)
            : MPIX_Precv_init(values.data(), 2, 2, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request),
        MPI_SUCCESS);
    EXPECT_EQ(MPIX_Start(&request), MPI_SUCCESS);
    if (isDetached) {
      EXPECT_EQ(MPIX_Comm_detach(comm), MPI_SUCCESS);
    }
    MPI_Comm_free(&comm);
    for (int epoch = 0; epoch < 2; ++epoch) {
      if (isSender) {
        values.fill(epoch + 1);
        EXPECT_EQ(MPIX_Pready_range(0, 3, request), MPI_SUCCESS) << MPIX_Error_text();
      }
      EXPECT_EQ(MPIX_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS) << MPIX_Error_text();
      EXPECT_EQ(values[3], epoch + 1);
      if (epoch == 0) {
        EXPECT_EQ(MPIX_Start(&request), MPI_SUCCESS);
      }
    }
    EXPECT_EQ(MPIX_Request_free(&request), MPI_SUCCESS);
  }
}

/// MPI_Finalize deletes the attributes of MPI_COMM_SELF; mpi_main.cpp does the rest.
TEST(Communicators, MayEndWithMpi) {
  static MPIX_Request left = MPIX_REQUEST_NULL;
  static std::array<int, 2> values{};
  ASSERT_EQ(MPIX_Comm_attach(MPI_COMM_SELF, nullptr), MPI_SUCCESS) << MPIX_Error_text();
  ASSERT_EQ(
      MPIX_Psend_init(values.data(), 2, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &left),
      MPI_SUCCESS);
  afterMpi = [] { return MPIX_Request_free(&left); };
}

/// The communicator of one source of a program is attached for the others.
TEST(Communicators, AreTheSameInAProgramOfC) {
  const Attached comm;
  EXPECT_EQ(runInC(comm), MPI_SUCCESS) << MPIX_Error_text();
}

TEST(NoProcess, TakesPartInNothing) {
  const Attached comm;
  Request send, receive;
  int value = 5, flag = 0, count = -1;
  MPI_Status status{};
  ASSERT_EQ(MPIX_Psend_init(&value, 3, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &send),
            MPI_SUCCESS);
  ASSERT_EQ(
      MPIX_Precv_init(nullptr, 3, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &receive),
      MPI_SUCCESS);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(MPIX_Pready(0, send), MPI_ERR_REQUEST) << "not started";
    EXPECT_EQ(firstOf({MPIX_Start(&send), MPIX_Start(&receive)}), MPI_SUCCESS);
    EXPECT_EQ(MPIX_Start(&send), MPI_ERR_REQUEST);
    EXPECT_EQ(MPIX_Request_free(&send), MPI_ERR_REQUEST);
    const int list[] = {1}, wrong[] = {2, 3};
    EXPECT_EQ(firstOf({MPIX_Pready(0, send), MPIX_Pready_list(1, list, send),
                       MPIX_Pready_list(0, nullptr, send), MPIX_Pbuf_prepare(send)}),
              MPI_SUCCESS);
    EXPECT_EQ(MPIX_Pready(3, send), MPI_ERR_ARG);
    EXPECT_EQ(MPIX_Pready_range(2, 1, send), MPI_ERR_ARG);
    EXPECT_EQ(MPIX_Pready_list(2, wrong, send), MPI_ERR_ARG);
    EXPECT_EQ(MPIX_Test(&send, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(flag, 0) << "partition 2 is not marked";
    EXPECT_EQ(MPIX_Pready_range(1, 2, send), MPI_ERR_ARG) << "the others are marked all the same";
    EXPECT_TRUE(hasText("partition 1 is ready already")) << MPIX_Error_text();
    EXPECT_EQ(MPIX_Pready(0, receive), MPI_ERR_REQUEST);
    EXPECT_EQ(MPIX_Parrived(receive, 2, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(MPIX_Parrived(receive, 3, &flag), MPI_ERR_ARG);
    EXPECT_EQ(MPIX_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
    EXPECT_EQ(MPIX_Test(&receive, &flag, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_TRUE(flag && count == 0 && status.MPI_SOURCE == MPI_PROC_NULL &&
                status.MPI_TAG == MPI_ANY_TAG);
    if (epoch == 0) {
      EXPECT_EQ(MPIX_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    } else {
      EXPECT_EQ(MPIX_Test(&send, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(flag, 1);
    }
  }
  EXPECT_EQ(MPIX_Psend_init(&value, -1, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &send),
            MPI_ERR_ARG)
      << "what is wrong is wrong all the same";
}

TEST(NoProcess, IsWaitedForUntilAllIsMarked) {
  const Attached comm;
  Request send;
  int values[4] = {};
  std::atomic<int> marked = 0;
  ASSERT_EQ(MPIX_Psend_init(values, 4, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &send),
            MPI_SUCCESS);
  ASSERT_EQ(MPIX_Start(&send), MPI_SUCCESS);
  std::thread marks([&] {
    for (int p = 0; p < 4; ++p) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++marked;
      EXPECT_EQ(MPIX_Pready(p, send), MPI_SUCCESS) << MPIX_Error_text();
    }
  });
  EXPECT_EQ(MPIX_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(marked, 4);
  marks.join();
}

/// Threads that mark may still be inside of that as another one frees the request: a sanitizer
/// finds what they access then.
void markWhileAnotherFrees(MPI_Comm comm, int dest) {
  std::array<int, 4> values{};
  for (int round = 0; round < 200; ++round) {
    MPIX_Request send = MPIX_REQUEST_NULL;
    ASSERT_EQ(MPIX_Psend_init(values.data(), 4, 1, MPI_INT, dest, 0, comm, MPI_INFO_NULL, &send),
              MPI_SUCCESS);
    ASSERT_EQ(MPIX_Start(&send), MPI_SUCCESS);
    std::vector<std::thread> threads;
    for (int p = 0; p < 4; ++p)
      threads.emplace_back([=] {
        const int code = p == 0   ? MPIX_Pready(p, send)
                         : p == 1 ? MPIX_Pready_list(1, &p, send)
                                  : MPIX_Pready_range(p, p, send);
        EXPECT_EQ(code, MPI_SUCCESS) << MPIX_Error_text();
      });
    EXPECT_EQ(MPIX_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(MPIX_Request_free(&send), MPI_SUCCESS) << MPIX_Error_text();
    for (std::thread &thread : threads)
      thread.join();
  }
}

TEST(Threads, MarkWhileAnotherFrees) {
  const Attached comm;
  markWhileAnotherFrees(comm, MPI_PROC_NULL);
  if (rankOf(comm) == 0) {
    markWhileAnotherFrees(comm, 1);
    return;
  }
  for (int round = 0; round < 200; ++round) {
    Request receive;
    int values[4] = {};
    ASSERT_EQ(MPIX_Precv_init(values, 4, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &receive),
              MPI_SUCCESS);
    EXPECT_EQ(firstOf({MPIX_Start(&receive), MPIX_Wait(&receive, MPI_STATUS_IGNORE)}), MPI_SUCCESS)
        << MPIX_Error_text();
  }
}

TEST(Hints, AreTaken) {
  const Attached comm;
  Request request;
  int values[8] = {}, flag = -1;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "occl_partitions_per_message", "4");
  MPI_Info_set(info, "somebody_elses", "x");
  const bool isSender = rankOf(comm) == 0;
  EXPECT_EQ(isSender ? MPIX_Psend_init(values, 8, 1, MPI_INT, 1, 0, comm, info, &request)
                     : MPIX_Precv_init(values, 8, 1, MPI_INT, 0, 0, comm, info, &request),
            MPI_SUCCESS)
      << MPIX_Error_text();
  EXPECT_EQ(firstOf({MPIX_Start(&request), MPIX_Pbuf_prepare(request)}), MPI_SUCCESS);
  if (isSender) {
    EXPECT_EQ(MPIX_Pready_range(0, 2, request), MPI_SUCCESS);
  }
  MPI_Barrier(comm);
  if (!isSender) {
    for (int look = 0; look < 50; ++look) {
      EXPECT_EQ(MPIX_Parrived(request, 0, &flag), MPI_SUCCESS);
      EXPECT_EQ(flag, 0) << "a message has four partitions";
    }
  }
  MPI_Barrier(comm);
  if (isSender) {
    EXPECT_EQ(MPIX_Pready(3, request), MPI_SUCCESS);
  } else {
    EXPECT_EQ(await(request, 0), MPI_SUCCESS);
  }
  if (isSender) {
    EXPECT_EQ(MPIX_Pready_range(4, 7, request), MPI_SUCCESS);
  }
  EXPECT_EQ(MPIX_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  Request refused;
  for (const char *wrong : {"4x", "-1", "9"}) {
    MPI_Info_set(info, "occl_partitions_per_message", wrong);
    const int code = MPIX_Psend_init(values, 8, 1, MPI_INT, 1, 0, comm, info, &refused);
    EXPECT_EQ(code, *wrong == '9' ? MPI_ERR_ARG : MPI_ERR_INFO_VALUE) << wrong;
  }
  MPI_Info_free(&info);
}

TEST(Misuse, IsRefused) {
  const Attached comm;
  Request request;
  int value = 0, flag = 0;
  const auto send = [&](int dest, int tag, void *buffer, MPI_Count count, MPIX_Request *made) {
    return MPIX_Psend_init(buffer, 1, count, MPI_INT, dest, tag, comm, MPI_INFO_NULL, made);
  };
  EXPECT_EQ(send(2, 0, &value, 1, &request), MPI_ERR_RANK);
  EXPECT_TRUE(hasText("dest is 2; there is no such rank of 2")) << MPIX_Error_text();
  EXPECT_EQ(send(-9, 0, &value, 1, &request), MPI_ERR_RANK);
  EXPECT_EQ(send(0, -7, &value, 1, &request), MPI_ERR_TAG);
  EXPECT_EQ(send(0, 0, MPI_BOTTOM, 1, &request), MPI_ERR_BUFFER);
  EXPECT_EQ(send(0, 0, &value, -1, &request), MPI_ERR_COUNT);
  EXPECT_EQ(send(0, 0, &value, 1, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Start(&request), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Start(nullptr), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pready(0, MPIX_REQUEST_NULL), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pready_range(0, 0, MPIX_REQUEST_NULL), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pready_list(0, nullptr, MPIX_REQUEST_NULL), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pbuf_prepare(MPIX_REQUEST_NULL), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Request_free(&request), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Cancel(&request), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Parrived(MPIX_REQUEST_NULL, 0, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Test(&request, nullptr, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Startall(-1, nullptr), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Waitall(-1, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Waitall(1, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Testall(1, &request, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Waitany(1, &request, nullptr, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Waitsome(1, &request, &flag, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
  EXPECT_EQ(firstOf({MPIX_Wait(&request, MPI_STATUS_IGNORE),
                     MPIX_Test(&request, &flag, MPI_STATUS_IGNORE)}),
            MPI_SUCCESS)
      << "of no request";
  EXPECT_EQ(flag, 1);
  ASSERT_EQ(send(0, 0, &value, 1, &request), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Pready(0, request), MPI_ERR_REQUEST) << "not started";
  EXPECT_EQ(MPIX_Pready_list(-1, nullptr, request), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Pready_list(1, nullptr, request), MPI_ERR_ARG);
}

} // namespace
} // namespace occl::mpix::testing
