// How fast can a small all-reduce of processes be on this machine at all? Each rank stores its 14
// floats and a flag in a cache line, reads those of all others, and offers the processor while one
// is missing: by hand, for one collective that all call in the same order, without anything that a
// library has to do. In turn with Open MPI's MPI_Allreduce, measured as host_collectives does:
// a barrier before each operation, the slowest rank's time, the median.
//
//   mpirun --oversubscribe -n 8 host_floor
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <new>
#include <sched.h>
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

/// Adds this rank's times of a stretch of operations, in seconds.
template <class Operation> void stretch(std::vector<double> &times, Operation operation) {
  for (uint32_t i = 0; i < kStretch; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    operation();
    const double time = MPI_Wtime() - begin;
    if (i >= kUnmeasured)
      times.push_back(time);
  }
}

/// Of the slowest rank of each operation, in microseconds; on rank 0.
double medianOfSlowest(const std::vector<double> &times) {
  std::vector<double> slowest(times.size());
  MPI_Reduce(times.data(), slowest.data(), static_cast<int>(times.size()), MPI_DOUBLE, MPI_MAX, 0,
             MPI_COMM_WORLD);
  std::ranges::nth_element(slowest, slowest.begin() + std::ssize(slowest) / 2);
  return slowest[slowest.size() / 2] * 1e6;
}

void compare() {
  Floor floor;
  Values input, sum, mpiSum;
  for (uint32_t i = 0; i < kFloats; ++i)
    input[i] = static_cast<float>(floor.rank + int(i));
  std::vector<double> own, mpi;
  for (uint32_t round = 0; round < kRounds; ++round) {
    if (round == kUnmeasuredRounds)
      own = mpi = {};
    stretch(own, [&] { sum = floor.allReduce(input); });
    stretch(mpi, [&] {
      MPI_Allreduce(input.data(), mpiSum.data(), kFloats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
  }
  if (sum != mpiSum) {
    std::fprintf(stderr, "host_floor: the sums differ\n");
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  const double ownTime = medianOfSlowest(own), mpiTime = medianOfSlowest(mpi);
  if (floor.rank == 0)
    std::printf("%2d ranks: by hand %.1f us, Open MPI %.1f us, %.2f times as fast\n",
                floor.numRanks, ownTime, mpiTime, mpiTime / ownTime);
}

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  compare();
  MPI_Finalize();
}
