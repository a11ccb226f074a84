// What the benches of applications have in common: a rank that is a process, and how it measures.
#pragma once

#include "bench/gpu/processes/measured.h"
#include "bench/gpu/processes/nccl.h"
#include "bench/gpu/processes/together.h"
#include "runtime/api/occl.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace occl::bench {

/// A process's communicator and stream, on device rank % devices. Of NCCL where that is, and no two
/// ranks share a device, which NCCL refuses.
class Rank {
public:
  /// What the parent of all ranks hears of the one at which they fail.
  struct Settings {
    static constexpr uint32_t kMost = 96;
    uint32_t now = 0; // 1 + its number; 0: none
    bool hasFailed[kMost] = {};
  };
  Rank(Together &together, uint32_t rank, Settings &settings);
  ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  bool isFirst() const { return rank == 0; }
  /// By the first rank.
  void print(const std::string &text) const;
  /// The median of so many, in microseconds, each begun by all ranks together and as long as the
  /// slowest takes from then until its stream has ended.
  double median(uint32_t times, const std::function<void()> &one);
  /// Microseconds for each of five that are enqueued in the stream, the median of seven such; and
  /// for each of ten that are in a graph.
  double inStream(const std::function<void()> &enqueue);
  double inGraph(const std::function<void()> &enqueue);
  /// Setting `number` begins, unless it has failed before: false. Then the next one does, or none.
  bool begin(uint32_t number);
  void endSettings() { settings.now = 0; }
  /// A request of `setting`; null if OCCL refuses that, as it does on all ranks alike, which the
  /// first one says.
  template <class Request, class... Arguments>
  std::unique_ptr<Request> madeUnlessRefused(const std::string &setting, Arguments &&...arguments) {
    try {
      return std::make_unique<Request>(comm, std::forward<Arguments>(arguments)...);
    } catch (const std::runtime_error &refusal) {
      if (isFirst())
        std::fprintf(stderr, "%s: %s\n", setting.c_str(), refusal.what());
      return nullptr;
    }
  }

  Together &together;
  const uint32_t rank, size;
  uint32_t ranksOfDevice = 1, multiprocessors = 0;
  occlComm_t comm = nullptr;
  std::unique_ptr<Nccl> nccl;
  cudaStream_t stream = nullptr;

private:
  Settings &settings;
};

/// What is enqueued in the stream, to be replayed.
class Graph {
public:
  Graph(cudaStream_t stream, const std::function<void()> &enqueue);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  void launch(cudaStream_t stream) const;

private:
  cudaGraphExec_t executable = nullptr;
};

/// What one() returns; errors name the setting.
template <class One> auto named(const std::string &setting, const One &one) {
  try {
    return one();
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(setting + ": " + error.what());
  }
}

/// A cell of a table; a ratio.
std::string ratio(double theirs, double ours);
/// The smallest of those that were measured, which are not 0; 0 if none was.
double best(const std::vector<double> &times);

/// `program <ranks> [check]`: body for each size, in as many processes of its own; check: nothing
/// is to be timed. If a setting fails, the size is done again without it; if something else does,
/// with the next size. The exit code: 1 if anything failed.
struct Run {
  uint64_t size = 0;
  bool isFirst = false, onlyChecks = false;
};
int runRanks(int argc, char **argv, const std::vector<uint64_t> &sizes,
             const std::function<void(Rank &, const Run &)> &body);
/// From the smallest one, each so many times the last one.
std::vector<uint64_t> sizesFrom(uint64_t smallest, uint64_t largest, uint64_t times);

} // namespace occl::bench
