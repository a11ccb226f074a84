// How fast can a small all-reduce of processes be on this machine at all? Each rank stores its 14
// floats and a flag in a cache line, reads those of all others, and offers the processor while one
// is missing: by hand, for one collective that all call in the same order, without anything that a
// library has to do. In turn with Open MPI's MPI_Allreduce and, given a plan, with occlCall of the
// same 56 bytes, measured as host_collectives does: a barrier before each operation, the slowest
// rank's time, the median. Beside it, of a rank and operation: its processor time, the kernel's for
// it included, and how often it has left the processor.
//
//   mpirun --oversubscribe -n 8 host_floor [plan for 8 ranks]
#include "runtime/api/occl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <new>
#include <optional>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <vector>

namespace {

constexpr uint32_t kFloats = 14;
constexpr uint32_t kRounds = 30, kUnmeasuredRounds = 20, kStretch = 120, kUnmeasured = 20;

struct alignas(64) Line {
  std::array<float, kFloats> values;
  std::atomic<uint64_t> flag;
};
static_assert(sizeof(Line) == 64);

using Values = std::array<float, kFloats>;

class Floor {
public:
  Floor() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &numRanks);
    const MPI_Aint bytes = rank == 0 ? MPI_Aint(sizeof(Line)) * (kSets * numRanks + 1) : 0;
    void *memory = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window, 0, &size, &unit, &memory);
    // As far from a page's begin in all processes.
    const auto address = reinterpret_cast<uintptr_t>(memory);
    lines = reinterpret_cast<Line *>((address + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line));
    if (rank == 0)
      for (int i = 0; i < kSets * numRanks; ++i)
        new (lines + i) Line{};
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Floor() { MPI_Win_free(&window); }
  Floor(const Floor &) = delete;
  Floor &operator=(const Floor &) = delete;

  /// A rank begins an operation only when all have ended the one kSets - 1 before: the caller has a
  /// barrier between any two.
  Values allReduce(const Values &input) {
    ++operation;
    Line *set = lines + operation % kSets * static_cast<uint64_t>(numRanks);
    set[rank].values = input;
    set[rank].flag.store(operation, std::memory_order_release);
    Values sum{};
    for (int r = 0; r < numRanks; ++r) {
      while (set[r].flag.load(std::memory_order_acquire) != operation)
        sched_yield();
      for (uint32_t i = 0; i < kFloats; ++i)
        sum[i] += set[r].values[i];
    }
    return sum;
  }

  int rank = 0, numRanks = 0;

private:
  static constexpr int kSets = 4;
  Line *lines = nullptr;
  MPI_Win window{};
  uint64_t operation = 0;
};

/// What one implementation took of this rank.
struct Costs {
  std::vector<double> times; // of each operation, in seconds
  double processorTime = 0;  // of this thread in all operations of the last rounds, in seconds
  long numSwitches = 0;      // to other threads, likewise
};

/// Adds this rank's times of a stretch of operations.
template <class Operation> void time(Costs &costs, Operation operation) {
  for (uint32_t i = 0; i < kStretch; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    operation();
    const double time = MPI_Wtime() - begin;
    if (i >= kUnmeasured)
      costs.times.push_back(time);
  }
}

double processorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

long numSwitches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

/// Likewise what the system counts, for which it has to be asked: so these are not timed.
template <class Operation> void count(Costs &costs, Operation operation) {
  for (uint32_t i = 0; i < kStretch; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const long switches = numSwitches();
    const double begin = processorTime();
    operation();
    costs.processorTime += processorTime() - begin;
    costs.numSwitches += numSwitches() - switches;
  }
}

[[noreturn]] void stop(const char *what) {
  std::fprintf(stderr, "host_floor: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::abort();
}

void require(occlResult_t result) {
  if (result != occlSuccess)
    stop(occlGetLastError());
}

/// The all-reduce of OCCL.
class Library {
public:
  explicit Library(const char *path) {
    require(occlCommInitFromEnv(&comm, nullptr));
    require(occlPlanLoad(path, &plan));
  }
  ~Library() {
    occlCommDestroy(comm);
    occlPlanDestroy(plan);
  }
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  Values allReduce(const Values &input) {
    Values sum;
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = plan;
    call.sendBuffer = input.data();
    call.recvBuffer = sum.data();
    call.count = kFloats;
    require(occlCall(comm, &call, nullptr));
    return sum;
  }

private:
  occlComm_t comm = nullptr;
  occlPlan_t plan = nullptr;
};

/// On rank 0.
void print(const char *name, const Costs &costs, const Floor &floor) {
  std::vector<double> slowest(costs.times.size());
  MPI_Reduce(costs.times.data(), slowest.data(), static_cast<int>(slowest.size()), MPI_DOUBLE,
             MPI_MAX, 0, MPI_COMM_WORLD);
  std::ranges::nth_element(slowest, slowest.begin() + std::ssize(slowest) / 2);
  const std::array<double, 2> own{costs.processorTime, static_cast<double>(costs.numSwitches)};
  std::array<double, 2> all{};
  MPI_Reduce(own.data(), all.data(), 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  const double operations = double(kRounds - kUnmeasuredRounds) * kStretch * floor.numRanks;
  if (floor.rank == 0)
    std::printf("| %s | %d | %.1f | %.2f | %.2f |\n", name, floor.numRanks,
                slowest[slowest.size() / 2] * 1e6, all[0] * 1e6 / operations, all[1] / operations);
}

void compare(const char *plan) {
  Floor floor;
  std::optional<Library> library;
  if (plan)
    library.emplace(plan);
  Values input, sum, librarySum, mpiSum;
  for (uint32_t i = 0; i < kFloats; ++i)
    input[i] = static_cast<float>(floor.rank + int(i));
  auto byHand = [&] { sum = floor.allReduce(input); };
  auto byLibrary = [&] { librarySum = library->allReduce(input); };
  auto byMpi = [&] {
    MPI_Allreduce(input.data(), mpiSum.data(), kFloats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  Costs ofHand, ofLibrary, ofMpi;
  for (uint32_t round = 0; round < kRounds; ++round) {
    if (round == kUnmeasuredRounds)
      ofHand = ofLibrary = ofMpi = {};
    time(ofHand, byHand);
    if (library)
      time(ofLibrary, byLibrary);
    time(ofMpi, byMpi);
  }
  for (uint32_t round = kUnmeasuredRounds; round < kRounds; ++round) {
    count(ofHand, byHand);
    if (library)
      count(ofLibrary, byLibrary);
    count(ofMpi, byMpi);
  }
  if (sum != mpiSum || (library && librarySum != mpiSum))
    stop("the sums differ");
  if (floor.rank == 0)
    std::printf("| | ranks | us | processor us | switches |\n|---|---:|---:|---:|---:|\n");
  print("by hand", ofHand, floor);
  if (library)
    print("OCCL", ofLibrary, floor);
  print("Open MPI", ofMpi, floor);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  compare(argc > 1 ? argv[1] : nullptr);
  MPI_Finalize();
}
