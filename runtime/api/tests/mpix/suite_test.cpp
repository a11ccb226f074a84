// For each of the 43 subjects of the MPI Forum's suite of partitioned tests
// (ompi-tests-public/partitioned-communication) a test of our own, by the name that it has there:
// what each of two ranks is told. 13 are errors that MPI libraries may miss, and that are found
// here; the request lives on then, and its epoch ends.
#include "runtime/api/tests/mpix/ranks.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <thread>
#include <vector>

namespace occl::mpix::testing {
namespace {

constexpr int kSender = 0, kReceiver = 1;
constexpr int kElements = 48;
constexpr int kTag = 5;

/// What the ranks of a test have in common: the one sends 48 int, the other receives them.
struct Side {
  explicit Side(MPI_Comm comm) : comm(comm), rank(rankOf(comm)) { fill(0); }

  bool isSender() const { return rank == kSender; }
  void fill(int from) {
    data.fill(-1);
    if (isSender())
      std::iota(data.begin(), data.end(), from);
    first = from;
  }
  /// What the receiver has.
  void expectData() const {
    for (int i = 0; !isSender() && i < kElements; ++i)
      ASSERT_EQ(data[static_cast<size_t>(i)], first + i) << "element " << i;
  }

  /// A send of the one rank, a receive of the other.
  int make(int partitions, MPI_Count count, MPI_Datatype type = MPI_INT) {
    return makeOf(&request, data.data(), partitions, count, type);
  }
  int makeOf(MPIX_Request *made, int *buffer, int partitions, MPI_Count count,
             MPI_Datatype type = MPI_INT) const {
    return isSender() ? MPIX_Psend_init(buffer, partitions, count, type, kReceiver, kTag, comm,
                                        MPI_INFO_NULL, made)
                      : MPIX_Precv_init(buffer, partitions, count, type, kSender, kTag, comm,
                                        MPI_INFO_NULL, made);
  }
  int start() { return MPIX_Start(&request); }
  int wait() { return MPIX_Wait(&request, MPI_STATUS_IGNORE); }
  /// Marks those of the sender.
  int mark(const std::vector<int> &partitions) {
    if (!isSender())
      return MPI_SUCCESS;
    return MPIX_Pready_list(static_cast<int>(partitions.size()), partitions.data(), request);
  }
  /// A whole epoch of four partitions; those that are left to be marked are given.
  int finish(const std::vector<int> &marks) {
    const int code = firstOf({mark(marks), wait()});
    EXPECT_EQ(code, MPI_SUCCESS) << MPIX_Error_text();
    expectData();
    return code;
  }
  /// Of different shapes.
  int run(int partitions, MPI_Count count, MPI_Datatype type = MPI_INT) {
    std::vector<int> all(static_cast<size_t>(partitions));
    std::iota(all.rbegin(), all.rend(), 0);
    int code = make(partitions, count, type);
    if (code == MPI_SUCCESS)
      code = start();
    if (code == MPI_SUCCESS)
      code = mark(all);
    return code == MPI_SUCCESS ? wait() : code;
  }
  int runAndExpect(int partitions, MPI_Count count, MPI_Datatype type = MPI_INT) {
    const int code = run(partitions, count, type);
    expectData();
    return code;
  }

  MPI_Comm comm;
  int rank, first = 0;
  std::array<int, kElements> data{};
  Request request;
};

/// A derived type, freed with it.
struct Contiguous {
  explicit Contiguous(int number) {
    MPI_Type_contiguous(number, MPI_INT, &type);
    MPI_Type_commit(&type);
  }
  ~Contiguous() { MPI_Type_free(&type); }
  MPI_Datatype type;
};

/// Begins an epoch of four partitions, has the sender (or receiver) do what is wrong, and goes on.
template <class Wrong> int beside(Side &side, int who, const std::vector<int> &rest, Wrong wrong) {
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS) << MPIX_Error_text();
  const int code = side.rank == who ? wrong() : MPI_SUCCESS;
  const std::string text = MPIX_Error_text();
  side.finish(rest);
  mpixFail(0, "%s", text.c_str()); // the table looks at what was said first
  return code;
}

/// Only one of the two has anything to make.
int makeAlone(Side &side, int who, int partitions) {
  return side.rank == who ? side.make(partitions, 12) : MPI_SUCCESS;
}

/// MPI's own transfer has nothing to do with a partitioned one of the same tag, which so finds
/// nobody, as the deadline says.
int withoutPartner(Side &side, int who) {
  int code = MPI_SUCCESS;
  if (side.rank == who)
    code = firstOf({side.make(4, 12), side.start(),
                    side.isSender() ? MPIX_Pready_range(0, 3, side.request) : MPI_SUCCESS,
                    side.wait()});
  MPI_Barrier(side.comm);
  return code;
}

// --- In the order of the names.

int cancel0(Side &side) {
  return beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Cancel(&side.request); });
}
int datatype0(Side &side) {
  const Contiguous twelve(12);
  return side.runAndExpect(4, 1, twelve.type);
}
int datatype1(Side &side) {
  const Contiguous twelve(12);
  return side.isSender() ? side.runAndExpect(4, 1, twelve.type) : side.runAndExpect(4, 12);
}
int datatype2(Side &side) {
  const Contiguous six(6);
  return side.isSender() ? side.runAndExpect(8, 1, six.type) : side.runAndExpect(1, 48);
}
int datatype3(Side &side) {
  const Contiguous six(6), all(48);
  return side.isSender() ? side.runAndExpect(4, 2, six.type) : side.runAndExpect(1, 1, all.type);
}
/// MPI's transfers of the same types and tag, while a partitioned one is under way.
int besideMpi(Side &side, int count, MPI_Datatype type, int received, MPI_Datatype receivedType) {
  std::array<int, kElements> values{};
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS);
  if (side.isSender()) {
    std::iota(values.begin(), values.end(), 7);
    MPI_Send(values.data(), count, type, kReceiver, kTag, side.comm);
  } else {
    MPI_Recv(values.data(), received, receivedType, kSender, kTag, side.comm, MPI_STATUS_IGNORE);
  }
  EXPECT_EQ(values.front(), 7);
  EXPECT_EQ(values.back(), 7 + kElements - 1);
  return side.finish({0, 1, 2, 3});
}
int datatype4(Side &side) {
  const Contiguous all(48);
  return besideMpi(side, 1, all.type, 48, MPI_INT);
}
int datatype5(Side &side) {
  const Contiguous six(6), all(48);
  return besideMpi(side, 8, six.type, 1, all.type);
}
int example1a(Side &side) {
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS);
  for (int p = 0; side.isSender() && p < 4; ++p)
    EXPECT_EQ(MPIX_Pready(p, side.request), MPI_SUCCESS);
  int flag = 0, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS)
    code = MPIX_Test(&side.request, &flag, MPI_STATUS_IGNORE);
  side.expectData();
  return code;
}
int example1b(Side &side) {
  int code = side.make(4, 12);
  for (int epoch = 0; epoch < 5 && code == MPI_SUCCESS; ++epoch) {
    MPI_Barrier(side.comm); // the buffers are the program's between epochs alone
    side.fill(100 * epoch);
    code = firstOf({side.start(), side.mark({2, 0, 3, 1}), side.wait()});
    side.expectData();
  }
  return code;
}
/// Threads make and mark a part of the partitions each.
int byThreads(Side &side, int partitions, int ofReceiver, MPI_Datatype type, int perPartition) {
  EXPECT_EQ(firstOf({side.isSender() ? side.make(partitions, perPartition, type)
                                     : side.make(ofReceiver, kElements / ofReceiver),
                     side.start()}),
            MPI_SUCCESS)
      << MPIX_Error_text();
  std::vector<std::thread> threads;
  for (int t = 0; side.isSender() && t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int p = t; p < partitions; p += 4) {
        const int each = kElements / partitions;
        std::iota(&side.data[static_cast<size_t>(p * each)],
                  &side.data[static_cast<size_t>(p * each)] + each, p * each);
        EXPECT_EQ(MPIX_Pready(p, side.request), MPI_SUCCESS) << MPIX_Error_text();
      }
    });
  const int code = side.wait();
  for (std::thread &thread : threads)
    thread.join();
  side.expectData();
  return code;
}
int example2(Side &side) { return byThreads(side, 16, 16, MPI_INT, 3); }
int example3a(Side &side) { return byThreads(side, 24, 24, MPI_INT, 2); }
int example3b(Side &side) { return byThreads(side, 24, 1, MPI_INT, 2); }
int example3c(Side &side) {
  const Contiguous two(2);
  return byThreads(side, 24, 3, two.type, 1);
}
int free0(Side &side) {
  return beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Request_free(&side.request); });
}
int init0(Side &side) {
  int value = -1, flag = 0;
  MPI_Request other = MPI_REQUEST_NULL;
  if (!side.isSender())
    MPI_Irecv(&value, 1, MPI_INT, kSender, kTag, side.comm, &other);
  const int code = withoutPartner(side, kSender);
  if (!side.isSender()) {
    MPI_Test(&other, &flag, MPI_STATUS_IGNORE);
    EXPECT_FALSE(flag);
    MPI_Cancel(&other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
  }
  return code;
}
int init1(Side &side) {
  int value = 3;
  MPI_Request other = MPI_REQUEST_NULL;
  if (side.isSender())
    MPI_Isend(&value, 1, MPI_INT, kReceiver, kTag, side.comm, &other);
  const int code = withoutPartner(side, kReceiver);
  if (!side.isSender())
    MPI_Recv(&value, 1, MPI_INT, kSender, kTag, side.comm, MPI_STATUS_IGNORE);
  MPI_Wait(&other, MPI_STATUS_IGNORE);
  return code;
}
int init2(Side &side) {
  int value = 4;
  MPI_Request other = MPI_REQUEST_NULL;
  if (side.isSender()) {
    MPI_Send_init(&value, 1, MPI_INT, kReceiver, kTag, side.comm, &other);
    MPI_Start(&other);
  }
  const int code = withoutPartner(side, kReceiver);
  if (!side.isSender())
    MPI_Recv(&value, 1, MPI_INT, kSender, kTag, side.comm, MPI_STATUS_IGNORE);
  MPI_Wait(&other, MPI_STATUS_IGNORE);
  if (other != MPI_REQUEST_NULL)
    MPI_Request_free(&other);
  return code;
}
/// Who comes first gets as far as its test.
int local(Side &side, int first) {
  int flag = 1;
  if (side.rank != first)
    MPI_Barrier(side.comm);
  EXPECT_EQ(firstOf({side.make(4, 12), side.start(), side.mark({0, 1, 2, 3})}), MPI_SUCCESS);
  if (side.rank == first) {
    EXPECT_EQ(MPIX_Test(&side.request, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_FALSE(flag);
    MPI_Barrier(side.comm);
  }
  return side.finish({});
}
int local0(Side &side) { return local(side, kSender); }
int local1(Side &side) { return local(side, kReceiver); }
int numparts0(Side &side) {
  return side.isSender() ? side.runAndExpect(8, 6) : side.runAndExpect(4, 12);
}
int numparts1(Side &side) {
  return side.isSender() ? side.runAndExpect(4, 12) : side.runAndExpect(8, 6);
}
/// Requests of one tag match in the order in which they are made, and are started in another one.
int order0(Side &side) {
  Request requests[2];
  int code = MPI_SUCCESS;
  for (int i : {0, 1})
    code =
        firstOf({code, side.makeOf(&requests[i], &side.data[static_cast<size_t>(24 * i)], 4, 6)});
  for (int i : {1, 0}) {
    code = firstOf({code, MPIX_Start(&requests[i])});
    if (side.isSender())
      code = firstOf({code, MPIX_Pready_range(0, 3, requests[i])});
  }
  for (int i : {0, 1})
    code = firstOf({code, MPIX_Wait(&requests[i], MPI_STATUS_IGNORE)});
  side.expectData();
  return code;
}
int parrived0(Side &side) {
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS);
  int code = MPI_SUCCESS, flag = -1;
  if (!side.isSender()) {
    EXPECT_EQ(MPIX_Parrived(side.request, 3, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 0) << "nothing is marked";
  }
  MPI_Barrier(side.comm);
  for (int p : {3, 1, 0, 2}) {
    code = firstOf({code, side.mark({p}), side.isSender() ? MPI_SUCCESS : await(side.request, p)});
    if (!side.isSender()) {
      EXPECT_EQ(side.data[static_cast<size_t>(12 * p)], 12 * p);
    }
  }
  return firstOf({code, side.finish({})});
}
int parrived1(Side &side) {
  int flag = 0;
  EXPECT_EQ(MPIX_Parrived(MPIX_REQUEST_NULL, 0, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  flag = 0;
  EXPECT_EQ(side.make(4, 12), MPI_SUCCESS);
  if (side.isSender())
    return MPI_SUCCESS;
  const int code = MPIX_Parrived(side.request, 0, &flag);
  EXPECT_EQ(flag, 1);
  return code;
}
int parrived2(Side &side) {
  int flag = 7;
  const int code =
      beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Parrived(side.request, 0, &flag); });
  EXPECT_EQ(flag, 7);
  return code;
}
int partitions0(Side &side) { return side.isSender() ? side.run(0, 12) : side.run(4, 12); }
int partitions1(Side &side) { return makeAlone(side, kSender, -1); }
int partitions2(Side &side) { return side.isSender() ? side.run(4, 12) : side.run(0, 12); }
int partitions3(Side &side) { return makeAlone(side, kReceiver, -1); }
int pready0(Side &side) {
  return beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Pready(5, side.request); });
}
int pready1(Side &side) {
  return beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Pready(4, side.request); });
}
int pready2(Side &side) {
  return beside(side, kSender, {0, 1, 2, 3}, [&] { return MPIX_Pready(-1, side.request); });
}
int pready3(Side &side) {
  return beside(side, kSender, {0, 1, 3}, [&] {
    EXPECT_EQ(MPIX_Pready(2, side.request), MPI_SUCCESS);
    return MPIX_Pready(2, side.request);
  });
}
int pready4(Side &side) {
  return beside(side, kReceiver, {0, 1, 2, 3}, [&] { return MPIX_Pready(0, side.request); });
}
int preadyList0(Side &side) {
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS);
  return firstOf({side.mark({3, 1}), side.finish({0, 2})});
}
int preadyList1(Side &side) {
  return beside(side, kSender, {0, 2}, [&] {
    const int twice[] = {1, 3, 1};
    return MPIX_Pready_list(3, twice, side.request);
  });
}
int preadyRange0(Side &side) {
  EXPECT_EQ(firstOf({side.make(4, 12), side.start()}), MPI_SUCCESS);
  const int code =
      side.isSender()
          ? firstOf({MPIX_Pready_range(2, 3, side.request), MPIX_Pready_range(0, 1, side.request)})
          : MPI_SUCCESS;
  return firstOf({code, side.finish({})});
}
int startall0(Side &side) {
  MPIX_Request requests[3] = {};
  int code = MPI_SUCCESS;
  for (int i = 0; i < 3; ++i)
    code =
        firstOf({code, side.makeOf(&requests[i], &side.data[static_cast<size_t>(16 * i)], 4, 4)});
  code = firstOf({code, MPIX_Startall(3, requests)});
  for (int i = 0; side.isSender() && i < 3; ++i)
    code = firstOf({code, MPIX_Pready_range(0, 3, requests[i])});
  code = firstOf({code, MPIX_Waitall(3, requests, MPI_STATUSES_IGNORE)});
  for (MPIX_Request &request : requests)
    code = firstOf({code, MPIX_Request_free(&request)});
  side.expectData();
  return code;
}
/// The status says in each epoch what has come, and that nothing has without one.
int state0(Side &side) {
  EXPECT_EQ(side.make(4, 12), MPI_SUCCESS);
  for (int epoch = 0; epoch < 4; ++epoch) {
    MPI_Status status{};
    int flag = 0, count = -1;
    EXPECT_EQ(MPIX_Test(&side.request, &flag, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_TRUE(flag && count == 0 && status.MPI_SOURCE == MPI_ANY_SOURCE &&
                status.MPI_TAG == MPI_ANY_TAG)
        << "no epoch";
    MPI_Barrier(side.comm);
    side.fill(epoch);
    EXPECT_EQ(firstOf({side.start(), side.mark({0, 1, 2, 3}), MPIX_Wait(&side.request, &status)}),
              MPI_SUCCESS);
    side.expectData();
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, side.isSender() ? 0 : kElements);
    EXPECT_EQ(status.MPI_SOURCE, side.isSender() ? MPI_ANY_SOURCE : kSender);
    EXPECT_EQ(status.MPI_TAG, side.isSender() ? MPI_ANY_TAG : kTag);
    MPI_Test_cancelled(&status, &flag);
    EXPECT_FALSE(flag);
  }
  return MPI_SUCCESS;
}
int wildcard(Side &side, int source, int tag) {
  if (side.isSender())
    return MPI_SUCCESS;
  return MPIX_Precv_init(side.data.data(), 4, 12, MPI_INT, source, tag, side.comm, MPI_INFO_NULL,
                         &side.request);
}
int wildcard0(Side &side) { return wildcard(side, MPI_ANY_SOURCE, kTag); }
int wildcard1(Side &side) { return wildcard(side, kSender, MPI_ANY_TAG); }
int zerocount0(Side &side) { return side.run(0, 12); }
int zerocount1(Side &side) { return side.run(4, 0); }

struct Case {
  const char *name;
  int (*body)(Side &);
  int sender = MPI_SUCCESS, receiver = MPI_SUCCESS; // what each is told
  const char *text = nullptr;                       // in the text of who is told of an error
  bool isMissed = false;                            // one of the 13
};

void PrintTo(const Case &is, std::ostream *to) { *to << is.name; }

const Case kCases[] = {
    {"cancel0", cancel0, MPI_ERR_REQUEST, MPI_SUCCESS, "cannot be cancelled", true},
    {"datatype0", datatype0},
    {"datatype1", datatype1},
    {"datatype2", datatype2},
    {"datatype3", datatype3},
    {"datatype4", datatype4},
    {"datatype5", datatype5},
    {"example1a", example1a},
    {"example1b", example1b},
    {"example2", example2},
    {"example3a", example3a},
    {"example3b", example3b},
    {"example3c", example3c},
    {"free0", free0, MPI_ERR_REQUEST, MPI_SUCCESS, "epoch 1 is not over", true},
    {"init0", init0, MPI_ERR_OTHER, MPI_SUCCESS, "waits for rank 1, which has no receive for it"},
    {"init1", init1, MPI_SUCCESS, MPI_ERR_OTHER, "waits for rank 0, which has no send for it"},
    {"init2", init2, MPI_SUCCESS, MPI_ERR_OTHER, "waits for rank 0, which has no send for it"},
    {"local0", local0},
    {"local1", local1},
    {"numparts0", numparts0},
    {"numparts1", numparts1},
    {"order0", order0},
    {"parrived0", parrived0},
    {"parrived1", parrived1},
    {"parrived2", parrived2, MPI_ERR_REQUEST, MPI_SUCCESS, "only partitions of a receive", true},
    {"partitions0", partitions0, MPI_ERR_TRUNCATE, MPI_ERR_TRUNCATE,
     "rank 0 sends 0 partitions of 12 int32", true},
    {"partitions1", partitions1, MPI_ERR_ARG, MPI_SUCCESS, "partitions is -1", true},
    {"partitions2", partitions2, MPI_ERR_TRUNCATE, MPI_ERR_TRUNCATE,
     "rank 1 receives 0 partitions of 12 int32", true},
    {"partitions3", partitions3, MPI_SUCCESS, MPI_ERR_ARG, "partitions is -1", true},
    {"pready0", pready0, MPI_ERR_ARG, MPI_SUCCESS, "there is no partition 5 of 4", true},
    {"pready1", pready1, MPI_ERR_ARG, MPI_SUCCESS, "there is no partition 4 of 4", true},
    {"pready2", pready2, MPI_ERR_ARG, MPI_SUCCESS, "there is no partition -1 of 4", true},
    {"pready3", pready3, MPI_ERR_ARG, MPI_SUCCESS, "partition 2 is ready already in epoch 1", true},
    {"pready4", pready4, MPI_SUCCESS, MPI_ERR_REQUEST, "only partitions of a send", true},
    {"pready_list0", preadyList0},
    {"pready_list1", preadyList1, MPI_ERR_ARG, MPI_SUCCESS, "partition 1 is ready already", true},
    {"pready_range0", preadyRange0},
    {"startall0", startall0},
    {"state0", state0},
    {"wildcard0", wildcard0, MPI_SUCCESS, MPI_ERR_RANK, "source is MPI_ANY_SOURCE"},
    {"wildcard1", wildcard1, MPI_SUCCESS, MPI_ERR_TAG, "tag is MPI_ANY_TAG"},
    {"zerocount0", zerocount0},
    {"zerocount1", zerocount1},
};

class Suite : public ::testing::TestWithParam<Case> {};

TEST_P(Suite, SaysWhatIsSo) {
  const Case &is = GetParam();
  const bool timesOut = is.sender == MPI_ERR_OTHER || is.receiver == MPI_ERR_OTHER;
  const Attached comm(timesOut ? 300 : 20000);
  Side side(comm);
  const int expected = side.isSender() ? is.sender : is.receiver;
  EXPECT_EQ(is.body(side), expected) << MPIX_Error_text();
  if (expected != MPI_SUCCESS) {
    EXPECT_TRUE(hasText(is.text)) << MPIX_Error_text();
  }
}

INSTANTIATE_TEST_SUITE_P(Forum, Suite, ::testing::ValuesIn(kCases),
                         [](const auto &is) { return std::string(is.param.name); });

TEST(Table, HasThemAll) {
  std::set<std::string> names;
  for (const Case &is : kCases) {
    names.insert(is.name);
    EXPECT_EQ(is.text != nullptr, is.sender != MPI_SUCCESS || is.receiver != MPI_SUCCESS);
  }
  EXPECT_EQ(names.size(), 43u);
  EXPECT_EQ(std::ranges::count_if(kCases, &Case::isMissed), 13);
}

} // namespace
} // namespace occl::mpix::testing
