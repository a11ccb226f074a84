// What it takes to make the request of a partitioned collective, of a shape that the rank has had
// before and of one that it has not, and to run an epoch of one whose partitions are all marked at
// once; and what a mark takes, of a send and of a collective, while several threads mark. Ranks are
// threads of this process.
#include "bench/runtime/checked.h"
#include "runtime/api/occl_partitioned_collectives.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using occl::bench::check;
using Clock = std::chrono::steady_clock;

constexpr int64_t kPartitions = 64;
constexpr uint32_t kRepeats = 301;

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double medianOf(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

/// Threads that mark every so many-th partition each, at a time.
class Markers {
public:
  explicit Markers(uint32_t number) : times(number) {
    for (uint32_t t = 0; t < number; ++t)
      threads.emplace_back([this, t] { run(t); });
  }
  ~Markers() {
    current = nullptr;
    ++round;
    for (std::thread &thread : threads)
      thread.join();
  }
  Markers(const Markers &) = delete;
  Markers &operator=(const Markers &) = delete;

  /// Nanoseconds of a mark, of the thread that took longest.
  double mark(occlPart_t part) {
    current = part;
    left = arriving = static_cast<uint32_t>(threads.size());
    ++round;
    while (left != 0)
      std::this_thread::yield();
    const auto each = static_cast<double>(kPartitions) / static_cast<double>(threads.size());
    return 1000 * *std::max_element(times.begin(), times.end()) / each;
  }

private:
  void run(uint32_t t) {
    for (uint32_t seen = 0;;) {
      while (round == seen)
        std::this_thread::yield();
      seen = round;
      if (!current)
        return;
      --arriving;
      while (arriving != 0) // so that all begin at a time, if there are processors
        std::this_thread::yield();
      const auto begin = Clock::now();
      for (int64_t p = t; p < kPartitions; p += static_cast<int64_t>(threads.size()))
        check(occlPready(current, p));
      times[t] = microsecondsSince(begin);
      --left;
    }
  }

  std::vector<double> times; // of the present round, by thread
  std::atomic<occlPart_t> current{nullptr};
  std::atomic<uint32_t> round{0}, arriving{0}, left{0};
  std::vector<std::thread> threads;
};

/// All-reduces of floats in place, of up to `most` elements.
class Bench {
public:
  Bench(uint32_t ranks, uint64_t most) : comms(ranks), data(ranks) {
    check(occlCommInitAll(comms.data(), ranks, nullptr));
    for (auto &buffer : data)
      buffer.assign(most, 0);
  }
  ~Bench() {
    for (occlComm_t comm : comms)
      check(occlCommDestroy(comm));
  }
  Bench(const Bench &) = delete;
  Bench &operator=(const Bench &) = delete;

  occlPart_t make(uint32_t rank, uint64_t count) {
    occlPart_t part = nullptr;
    check(occlPallReduceInit(data[rank].data(), kPartitions, data[rank].data(), kPartitions, count,
                             occlFloat32, occlSum, comms[rank], nullptr, &part));
    return part;
  }
  /// Microseconds until the k-th is made, of countOf(k) elements, the median.
  template <class CountOf> double timeToMake(CountOf countOf) {
    std::vector<double> times;
    std::vector<occlPart_t> parts;
    for (uint32_t k = 0; k < kRepeats; ++k) {
      const auto begin = Clock::now();
      parts.push_back(make(0, countOf(k)));
      times.push_back(microsecondsSince(begin));
      check(occlPfree(parts.back()));
    }
    for (uint32_t rank = 1; rank < comms.size(); ++rank) // so that later ones belong together
      for (uint32_t k = 0; k < kRepeats; ++k)
        check(occlPfree(make(rank, countOf(k))));
    return medianOf(times);
  }
  /// Microseconds of an epoch on rank 0, the median.
  double timeOfEpoch(uint64_t count) {
    std::vector<double> times;
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < comms.size(); ++rank)
      threads.emplace_back([&, rank] {
        occlPart_t part = make(rank, count);
        for (uint32_t epoch = 0; epoch < kRepeats; ++epoch) {
          const auto begin = Clock::now();
          check(occlPstart(part));
          check(occlPreadyRange(part, 0, kPartitions - 1));
          check(occlPwait(part));
          if (rank == 0)
            times.push_back(microsecondsSince(begin));
        }
        check(occlPfree(part));
      });
    for (std::thread &thread : threads)
      thread.join();
    return medianOf(times);
  }

  /// Nanoseconds of a mark of rank 0's, the median of epochs in which so many threads make them:
  /// of a send, or of a collective, neither of which another rank has started meanwhile.
  double timeOfMark(uint32_t threads, bool isCollective) {
    Markers markers(threads);
    std::vector<double> times;
    occlPart_t mine = nullptr, theirs = nullptr;
    if (isCollective) {
      mine = make(0, kPartitions);
      theirs = make(1, kPartitions);
    } else {
      check(occlPsendInit(comms[0], data[0].data(), kPartitions, 1, occlFloat32, 1, 0, nullptr,
                          &mine));
      check(occlPrecvInit(comms[1], data[1].data(), kPartitions, 1, occlFloat32, 0, 0, nullptr,
                          &theirs));
    }
    for (uint32_t epoch = 0; epoch < 10 * kRepeats; ++epoch) {
      check(occlPstart(mine));
      times.push_back(markers.mark(mine));
      check(occlPstart(theirs));
      if (isCollective)
        check(occlPreadyRange(theirs, 0, kPartitions - 1));
      check(occlPwait(theirs));
      check(occlPwait(mine));
    }
    check(occlPfree(mine));
    check(occlPfree(theirs));
    return medianOf(times);
  }

private:
  std::vector<occlComm_t> comms;
  std::vector<std::vector<float>> data;
};

} // namespace

int main() {
  constexpr uint64_t kMost = 4 << 20; // 16 MiB
  std::printf("| ranks | bytes | made again, us | new shape, us | epoch, us |\n"
              "|---:|---:|---:|---:|---:|\n");
  for (uint32_t ranks : {2u, 4u, 8u}) {
    Bench bench(ranks, kMost);
    for (uint64_t count : {uint64_t{1} << 10, uint64_t{1} << 18, kMost}) {
      const double again = bench.timeToMake([&](uint32_t) { return count; });
      const double fresh = bench.timeToMake([&](uint32_t k) { return count - 1 - k; });
      std::printf("| %u | %llu | %.1f | %.1f | %.1f |\n", ranks,
                  static_cast<unsigned long long>(4 * count), again, fresh,
                  bench.timeOfEpoch(count));
    }
  }
  std::printf("\n%-58s %10s\n", "median", "ns");
  for (bool isCollective : {false, true})
    for (uint32_t threads : {1u, 2u, 4u, 8u}) {
      Bench bench(2, kPartitions);
      std::printf("a mark of a partitioned %s, %u thread%-17s %10.1f\n",
                  isCollective ? "collective" : "send", threads, threads == 1 ? "" : "s at a time",
                  bench.timeOfMark(threads, isCollective));
    }
}
