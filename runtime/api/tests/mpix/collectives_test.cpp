// The partitioned collectives of mpix_occl_collectives.h, between three ranks that divide their
// buffers differently.
#include "runtime/api/tests/mpix/ranks.h"

#include <functional>
#include <string>
#include <vector>

namespace occl::mpix::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kPart = 24; // elements
constexpr int kRoot = 1;

/// Element i of rank r's input.
int inputOf(int rank, int i) { return 1000 * rank + i; }
int sumOf(int i) { return 1000 * 3 + kRanks * i; }

/// A collective of a rank: buffers, request, and what has to be there afterwards.
struct Collective {
  const char *name;
  int inputParts, outputParts; // of ranks that have any
  bool onlyRootHasInput, onlyRootHasOutput;
  std::function<int(int rank, int i)> expected;
  std::function<int(std::vector<int> &, int, std::vector<int> &, int, MPI_Comm, MPIX_Request *)>
      init;
};

const Collective kCollectives[] = {
    {"Pallreduce", 1, 1, false, false, [](int, int i) { return sumOf(i); },
     [](auto &in, int p, auto &out, int, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Pallreduce_init(in.data(), out.data(), p, kPart / p, MPI_INT, MPI_SUM, comm,
                                   MPI_INFO_NULL, request);
     }},
    {"Preduce", 1, 1, false, true, [](int, int i) { return sumOf(i); },
     [](auto &in, int p, auto &out, int, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Preduce_init(in.data(), out.data(), p, kPart / p, MPI_INT, MPI_SUM, kRoot, comm,
                                MPI_INFO_NULL, request);
     }},
    {"Preduce_scatter_block", kRanks, 1, false, false,
     [](int rank, int i) { return sumOf(kPart * rank + i); },
     [](auto &in, int p, auto &out, int q, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Preduce_scatter_block_init(in.data(), p, kRanks * kPart / p, out.data(), q,
                                              kPart / q, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                                              request);
     }},
    {"Pallgather", 1, kRanks, false, false,
     [](int, int i) { return inputOf(i / kPart, i % kPart); },
     [](auto &in, int p, auto &out, int q, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Pallgather_init(in.data(), p, kPart / p, MPI_INT, out.data(), q,
                                   kRanks * kPart / q, MPI_INT, comm, MPI_INFO_NULL, request);
     }},
    {"Palltoall", kRanks, kRanks, false, false,
     [](int rank, int i) { return inputOf(i / kPart, kPart * rank + i % kPart); },
     [](auto &in, int p, auto &out, int q, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Palltoall_init(in.data(), p, kRanks * kPart / p, MPI_INT, out.data(), q,
                                  kRanks * kPart / q, MPI_INT, comm, MPI_INFO_NULL, request);
     }},
    {"Pgather", 1, kRanks, false, true, [](int, int i) { return inputOf(i / kPart, i % kPart); },
     [](auto &in, int p, auto &out, int q, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Pgather_init(in.data(), p, kPart / p, MPI_INT, out.data(), q, kRanks * kPart / q,
                                MPI_INT, kRoot, comm, MPI_INFO_NULL, request);
     }},
    {"Pscatter", kRanks, 1, true, false,
     [](int rank, int i) { return inputOf(kRoot, kPart * rank + i); },
     [](auto &in, int p, auto &out, int q, MPI_Comm comm, MPIX_Request *request) {
       return MPIX_Pscatter_init(in.data(), p, kRanks * kPart / p, MPI_INT, out.data(), q,
                                 kPart / q, MPI_INT, kRoot, comm, MPI_INFO_NULL, request);
     }},
};

/// Numbers that divide the buffers, other ones on each rank.
constexpr int kInputPartitions[kRanks] = {4, 6, 1}, kOutputPartitions[kRanks] = {2, 12, 8};

/// Marks from the last to the first, and looks at each that arrives.
void runEpoch(const Collective &is, int rank, MPIX_Request request, const std::vector<int> &out,
              int inputs, int outputs) {
  for (int p = inputs; p-- > 0;)
    ASSERT_EQ(MPIX_Pready(p, request), MPI_SUCCESS) << is.name << ": " << MPIX_Error_text();
  const int each = outputs == 0 ? 0 : static_cast<int>(out.size()) / outputs;
  for (int q = 0; q < outputs; ++q) {
    ASSERT_EQ(await(request, q), MPI_SUCCESS) << is.name << ": " << MPIX_Error_text();
    for (int i = q * each; i < (q + 1) * each; ++i)
      ASSERT_EQ(out[static_cast<size_t>(i)], is.expected(rank, i)) << is.name << ", element " << i;
  }
}

TEST(Collectives, GiveWhatMpisDo) {
  const Attached comm;
  const int rank = rankOf(comm);
  for (const Collective &is : kCollectives) {
    const bool hasInput = !is.onlyRootHasInput || rank == kRoot;
    const bool hasOutput = !is.onlyRootHasOutput || rank == kRoot;
    std::vector<int> in(static_cast<size_t>(hasInput ? kPart * is.inputParts : 0));
    std::vector<int> out(static_cast<size_t>(hasOutput ? kPart * is.outputParts : 0));
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = inputOf(rank, static_cast<int>(i));
    // Of Pallreduce and Preduce both sides have one number.
    const int p = kInputPartitions[rank];
    const int q = is.inputParts == 1 && is.outputParts == 1 ? p : kOutputPartitions[rank];
    Request request;
    ASSERT_EQ(is.init(in, p, out, q, comm, &request), MPI_SUCCESS)
        << is.name << ": " << MPIX_Error_text();
    for (int epoch = 0; epoch < 3; ++epoch) {
      ASSERT_EQ(MPIX_Start(&request), MPI_SUCCESS) << MPIX_Error_text();
      runEpoch(is, rank, request, out, hasInput ? p : 0, hasOutput ? q : 0);
      ASSERT_EQ(MPIX_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS) << MPIX_Error_text();
      std::fill(out.begin(), out.end(), -1);
    }
  }
}

TEST(Collectives, Broadcast) {
  const Attached comm;
  const int rank = rankOf(comm);
  std::vector<int> buffer(kPart);
  Request request;
  ASSERT_EQ(MPIX_Pbcast_init(buffer.data(), 8, 3, MPI_INT, kRoot, comm, MPI_INFO_NULL, &request),
            MPI_SUCCESS)
      << MPIX_Error_text();
  for (int epoch = 1; epoch < 4; ++epoch) {
    ASSERT_EQ(MPIX_Start(&request), MPI_SUCCESS);
    if (rank == kRoot) {
      std::fill(buffer.begin(), buffer.end(), epoch);
      EXPECT_EQ(MPIX_Pready_range(0, 7, request), MPI_SUCCESS) << MPIX_Error_text();
    } else {
      EXPECT_EQ(MPIX_Pready(0, request), MPI_ERR_ARG);
    }
    ASSERT_EQ(MPIX_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS) << MPIX_Error_text();
    EXPECT_EQ(buffer, std::vector<int>(kPart, epoch));
  }
}

/// Ranks start in opposite orders, and wait for each before they start the next.
TEST(Collectives, StartInAnyOrder) {
  const Attached comm;
  constexpr int kRequests = 5;
  const int rank = rankOf(comm);
  std::vector<std::vector<double>> values(kRequests, std::vector<double>(kPart));
  MPIX_Request requests[kRequests];
  for (int i = 0; i < kRequests; ++i)
    ASSERT_EQ(MPIX_Pallreduce_init(MPI_IN_PLACE, values[static_cast<size_t>(i)].data(), 4,
                                   kPart / 4, MPI_DOUBLE, MPI_MAX, comm, MPI_INFO_NULL,
                                   &requests[i]),
              MPI_SUCCESS)
        << MPIX_Error_text();
  for (int k = 0; k < kRequests; ++k) {
    const int i = (k * (rank + 1) + rank) % kRequests;
    ASSERT_EQ(MPIX_Start(&requests[i]), MPI_SUCCESS) << MPIX_Error_text();
    for (double &value : values[static_cast<size_t>(i)])
      value = 10 * i + rank;
    ASSERT_EQ(MPIX_Pready_range(0, 3, requests[i]), MPI_SUCCESS) << MPIX_Error_text();
  }
  ASSERT_EQ(MPIX_Waitall(kRequests, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS)
      << MPIX_Error_text();
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(values[static_cast<size_t>(i)], std::vector<double>(kPart, 10 * i + kRanks - 1));
    EXPECT_EQ(MPIX_Request_free(&requests[i]), MPI_SUCCESS);
  }
}

TEST(Collectives, MisuseIsRefused) {
  const Attached comm;
  Request request;
  std::vector<int> in(kRanks * kPart), out(kRanks * kPart);
  std::vector<short> shorts(kPart);
  const auto reduce = [&](void *from, void *to, int partitions, MPI_Datatype type, MPI_Op op) {
    return MPIX_Pallreduce_init(from, to, partitions, 4, type, op, comm, MPI_INFO_NULL, &request);
  };
  EXPECT_EQ(reduce(in.data(), out.data(), 4, MPI_INT, MPI_BXOR), MPI_ERR_OP);
  EXPECT_TRUE(hasText("none of MPI_SUM")) << MPIX_Error_text();
  EXPECT_EQ(reduce(shorts.data(), shorts.data(), 4, MPI_SHORT, MPI_SUM), MPI_ERR_TYPE);
  EXPECT_EQ(reduce(in.data(), out.data(), -1, MPI_INT, MPI_SUM), MPI_ERR_ARG);
  EXPECT_EQ(reduce(nullptr, out.data(), 4, MPI_INT, MPI_SUM), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Pbcast_init(in.data(), 4, 4, MPI_INT, kRanks, comm, MPI_INFO_NULL, &request),
            MPI_ERR_ROOT);
  EXPECT_EQ(MPIX_Palltoall_init(in.data(), 5, 4, MPI_INT, out.data(), 5, 4, MPI_INT, comm,
                                MPI_INFO_NULL, &request),
            MPI_ERR_COUNT);
  EXPECT_TRUE(hasText("20 elements cannot be divided among 3 ranks")) << MPIX_Error_text();
  EXPECT_EQ(MPIX_Pallgather_init(in.data(), 4, 4, MPI_INT, out.data(), 4, 4, MPI_INT, comm,
                                 MPI_INFO_NULL, &request),
            MPI_ERR_COUNT);
  EXPECT_EQ(MPIX_Pallgather_init(in.data(), 4, 4, MPI_INT, out.data(), 12, 4, MPI_FLOAT, comm,
                                 MPI_INFO_NULL, &request),
            MPI_ERR_TYPE);
  EXPECT_EQ(MPIX_Pallgather_init(MPI_IN_PLACE, 4, 4, MPI_INT, out.data(), 12, 4, MPI_INT, comm,
                                 MPI_INFO_NULL, &request),
            MPI_ERR_BUFFER);
  EXPECT_EQ(MPIX_Pallreduce_init(in.data(), out.data(), 4, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &request),
            MPI_ERR_COMM);
  EXPECT_EQ(MPIX_Pallreduce_init(in.data(), out.data(), 4, 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                                 nullptr),
            MPI_ERR_ARG);
}

TEST(Collectives, MarksAreChecked) {
  const Attached comm;
  Request request;
  std::vector<int> values(kPart, 1);
  ASSERT_EQ(MPIX_Pallreduce_init(MPI_IN_PLACE, values.data(), 4, 6, MPI_INT, MPI_SUM, comm,
                                 MPI_INFO_NULL, &request),
            MPI_SUCCESS)
      << MPIX_Error_text();
  EXPECT_EQ(MPIX_Pready(0, request), MPI_ERR_REQUEST) << "not started";
  ASSERT_EQ(MPIX_Start(&request), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Start(&request), MPI_ERR_REQUEST);
  EXPECT_EQ(MPIX_Pready(4, request), MPI_ERR_ARG);
  EXPECT_EQ(MPIX_Pready_range(0, 3, request), MPI_SUCCESS);
  EXPECT_EQ(MPIX_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(values, std::vector<int>(kPart, kRanks));
}

} // namespace
} // namespace occl::mpix::testing
