// A buffer that is sent while it is made: OCCL's partitioned send beside the forms that Open MPI
// has for it, in the same two processes on the same data; start it by mpirun -n 2. One MPI_Send of
// the whole, which is also what MPICH 4.0 does with partitions; a nonblocking send of each
// partition; a persistent one of each. (Open MPI 4 has no MPI_Psend_init.)
//
// All partitions but the last are there at once; the last one comes after `late`, as if one of as
// many threads were late. The figure is the time from then until the receiver has all: bytes by
// that time are the perceived bandwidth. The forms take turns, an epoch each, in another order each
// time, a barrier before each. Rank 0 prints a row of a Markdown table for each size.
#include "runtime/api/occl_partitioned.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mpi.h>
#include <string>
#include <time.h>
#include <vector>

namespace {

constexpr uint32_t kEpochs = 31, kUnmeasured = 5;
/// 4 % of 10 ms of computation.
constexpr double kLate = 400e-6;

void check(bool isWell, const char *what) {
  if (isWell)
    return;
  std::fprintf(stderr, "host_partitioned: %s: %s\n", what, occlGetLastError());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Of all processes of the machine.
double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Setup {
  uint64_t bytes;
  int64_t partitions;
  double late; // seconds

  uint64_t partitionBytes() const { return bytes / static_cast<uint64_t>(partitions); }
};

/// How a buffer is sent from rank 0 to rank 1. One thread on each rank.
class Form {
public:
  virtual ~Form() = default;
  virtual void start() = 0;
  /// Rank 0: partition p is made.
  virtual void ready(int64_t p) = 0;
  /// The buffer may be changed again, or all has come.
  virtual void wait() = 0;
};

class Occl final : public Form {
public:
  /// polls: it waits by occlPtest, as MPI's waits do, and not by occlPwait, which sleeps when it
  /// has nothing to do.
  Occl(occlComm_t comm, int rank, char *buffer, const Setup &setup, bool polls) : polls(polls) {
    const uint64_t count = setup.partitionBytes();
    check((rank == 0 ? occlPsendInit(comm, buffer, setup.partitions, count, occlUint8, 1, 0,
                                     nullptr, &part)
                     : occlPrecvInit(comm, buffer, setup.partitions, count, occlUint8, 0, 0,
                                     nullptr, &part)) == occlSuccess,
          "making a request");
  }
  ~Occl() override { occlPfree(part); }
  void start() override { check(occlPstart(part) == occlSuccess, "occlPstart"); }
  void ready(int64_t p) override { check(occlPready(part, p) == occlSuccess, "occlPready"); }
  void wait() override {
    occlResult_t result = polls ? occlInProgress : occlPwait(part);
    while (result == occlInProgress)
      result = occlPtest(part);
    check(result == occlSuccess, "waiting");
  }

private:
  const bool polls;
  occlPart_t part = nullptr;
};

class OneSend final : public Form {
public:
  OneSend(int rank, char *buffer, const Setup &setup) : rank(rank), buffer(buffer), setup(setup) {}
  void start() override {}
  void ready(int64_t) override {}
  void wait() override {
    const int bytes = static_cast<int>(setup.bytes);
    if (rank == 0)
      MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

private:
  const int rank;
  char *const buffer;
  const Setup setup;
};

/// A message each.
class SendEach final : public Form {
public:
  SendEach(int rank, char *buffer, const Setup &setup, bool isPersistent)
      : rank(rank), isPersistent(isPersistent), buffer(buffer), setup(setup),
        requests(static_cast<size_t>(setup.partitions), MPI_REQUEST_NULL) {
    for (int64_t p = 0; isPersistent && p < setup.partitions; ++p)
      (rank == 0 ? MPI_Send_init(at(p), bytes(), MPI_BYTE, 1, tag(p), MPI_COMM_WORLD, &of(p))
                 : MPI_Recv_init(at(p), bytes(), MPI_BYTE, 0, tag(p), MPI_COMM_WORLD, &of(p)));
  }
  ~SendEach() override {
    for (MPI_Request &request : requests)
      if (isPersistent)
        MPI_Request_free(&request);
  }
  void start() override {
    if (rank != 0 && isPersistent)
      MPI_Startall(number(), requests.data());
    for (int64_t p = 0; rank != 0 && !isPersistent && p < setup.partitions; ++p)
      MPI_Irecv(at(p), bytes(), MPI_BYTE, 0, tag(p), MPI_COMM_WORLD, &of(p));
  }
  void ready(int64_t p) override {
    if (isPersistent)
      MPI_Start(&of(p));
    else
      MPI_Isend(at(p), bytes(), MPI_BYTE, 1, tag(p), MPI_COMM_WORLD, &of(p));
  }
  void wait() override { MPI_Waitall(number(), requests.data(), MPI_STATUSES_IGNORE); }

private:
  MPI_Request &of(int64_t p) { return requests[static_cast<size_t>(p)]; }
  char *at(int64_t p) const { return buffer + static_cast<uint64_t>(p) * setup.partitionBytes(); }
  int bytes() const { return static_cast<int>(setup.partitionBytes()); }
  int number() const { return static_cast<int>(requests.size()); }
  static int tag(int64_t p) { return static_cast<int>(p); }

  const int rank;
  const bool isPersistent;
  char *const buffer;
  const Setup setup;
  std::vector<MPI_Request> requests;
};

/// Seconds from when the last partition was there until rank 1 had all; on rank 0.
double runEpoch(Form &form, int rank, char *buffer, const Setup &setup, uint32_t epoch) {
  const uint64_t bytes = setup.bytes;
  std::memset(buffer, rank == 0 ? static_cast<int>(epoch % 127 + 1) : 0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  double made = 0, arrived = 0;
  form.start();
  if (rank == 0) {
    for (int64_t p = 0; p + 1 < setup.partitions; ++p)
      form.ready(p);
    for (const double end = now() + setup.late; now() < end;)
      ; // as a computation would
    made = now();
    form.ready(setup.partitions - 1);
  }
  form.wait();
  if (rank == 1) {
    arrived = now();
    const char expected = static_cast<char>(epoch % 127 + 1);
    check(std::all_of(buffer, buffer + bytes, [&](char c) { return c == expected; }),
          "wrong data have come");
    MPI_Send(&arrived, 1, MPI_DOUBLE, 0, 1 << 14, MPI_COMM_WORLD);
    return 0;
  }
  MPI_Recv(&arrived, 1, MPI_DOUBLE, 1, 1 << 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return arrived - made;
}

double medianOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Prints the row of a setup: microseconds of each form. `own` is of occlMemAlloc, from where
/// receivers read in place.
void compare(occlComm_t comm, int rank, const Setup &setup, char *own, char *theirs) {
  Occl sleeping(comm, rank, own, setup, false), polling(comm, rank, own, setup, true);
  OneSend one(rank, theirs, setup);
  SendEach each(rank, theirs, setup, false), persistent(rank, theirs, setup, true);
  const std::array<Form *, 5> forms = {&sleeping, &polling, &one, &each, &persistent};
  std::array<std::vector<double>, 5> times;
  for (uint32_t epoch = 0; epoch < kEpochs + kUnmeasured; ++epoch)
    for (size_t i = 0; i < forms.size(); ++i) {
      const size_t next = (i + epoch) % forms.size();
      const double time = runEpoch(*forms[next], rank, next < 2 ? own : theirs, setup,
                                   epoch * 5 + static_cast<uint32_t>(next));
      if (epoch >= kUnmeasured)
        times[next].push_back(time * 1e6);
    }
  if (rank != 0)
    return;
  std::printf("| %lld%s | %llu |", static_cast<long long>(setup.partitions),
              setup.late > 0 ? ", the last one late" : "",
              static_cast<unsigned long long>(setup.bytes));
  for (const std::vector<double> &of : times)
    std::printf(" %.1f |", medianOf(of));
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, numRanks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &numRanks);
  check(numRanks == 2, "start it by mpirun -n 2");
  std::array<char, 64> name{};
  if (rank == 0)
    std::snprintf(name.data(), name.size(), "host_partitioned-%d", static_cast<int>(time(nullptr)));
  MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  occlComm_t comm = nullptr;
  check(occlCommInitRank(&comm, 2, static_cast<uint32_t>(rank), name.data(), nullptr) ==
            occlSuccess,
        "making a communicator");
  if (rank == 0)
    std::printf(
        "| partitions | bytes | OCCL us | polling us | one MPI_Send us | MPI_Isend each us | "
        "MPI_Send_init each us |\n|---|---|---|---|---|---|---|\n");
  constexpr uint64_t kMost = 16 << 20;
  void *own = nullptr;
  check(occlMemAlloc(comm, kMost, &own) == occlSuccess, "occlMemAlloc");
  std::vector<char> theirs(kMost);
  for (uint64_t bytes : {uint64_t{64} << 10, uint64_t{1} << 20, kMost})
    for (const Setup &setup : {Setup{bytes, 1, 0}, Setup{bytes, 8, kLate}, Setup{bytes, 64, kLate}})
      compare(comm, rank, setup, static_cast<char *>(own), theirs.data());
  check(occlMemFree(comm, own) == occlSuccess, "occlMemFree");
  occlCommDestroy(comm);
  MPI_Finalize();
}
