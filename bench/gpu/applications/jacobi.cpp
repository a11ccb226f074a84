// gpu_jacobi <ranks> [check]: Jacobi's iteration on a grid of n x n floats, each rank a process.
// Every form's result is compared with one that the host computes before it is timed: all values
// are the same bits, and the sum of squares differs by no more than its rounding. A row for each n:
// microseconds for an iteration, of 100 and a sum over all ranks that the host sees; what NCCL's
// best form takes by ours; and by the form by hand, the most that there is to gain.
#include "bench/gpu/applications/jacobi_forms.h"
#include "examples/partitioned/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace occl::bench;
using occl::examples::check;
using occl::examples::JacobiShape;

namespace {

constexpr uint32_t kSmallest = 512, kLargest = 16384, kLargestShared = 2048;
constexpr uint32_t kIterations = 100, kTimes = 11;
/// Of a comparison: calls, each of fewer iterations, as the host computes them all.
constexpr uint32_t kCheckedCalls = 2, kCheckedIterations = 10;
/// Of 1e9 values at most, which threads add up as floats a few hundred at a time.
constexpr double kMostError = 1e-4;

/// What a value is at the begin.
float valueAt(uint32_t row, uint32_t column) {
  return static_cast<float>((row * 7919u + column * 104729u) % 1024u) / 1024.f;
}

/// What the host computes, of this rank's rows: after each call of kCheckedIterations.
struct Reference {
  std::vector<float> rows;    // after the last call
  std::vector<double> change; // of the last iteration of each call, all ranks'
};

/// The rank's rows and as many more on both sides as iterations bring something from.
Reference referenceOf(const JacobiShape &shape, Rank &rank) {
  const auto n = static_cast<int64_t>(shape.n);
  const int64_t margin = kCheckedCalls * kCheckedIterations;
  const int64_t mine = shape.firstRow(shape.rank), end = shape.firstRow(shape.rank + 1);
  const int64_t low = std::max<int64_t>(mine - margin, 0), high = std::min(end + margin, n);
  const int64_t width = n + 2; // zeroes on both sides
  // With a row more on both sides: ones above the grid; elsewhere it gets stale, within the margin.
  std::vector<float> old(static_cast<size_t>((high - low + 2) * width), 0.f);
  for (int64_t row = low; row < high; ++row)
    for (int64_t c = 0; c < n; ++c)
      old[static_cast<size_t>((row - low + 1) * width + c + 1)] =
          valueAt(static_cast<uint32_t>(row), static_cast<uint32_t>(c));
  if (low == 0)
    std::fill_n(old.begin() + 1, n, 1.f);
  std::vector<float> now = old;
  Reference reference;
  for (uint32_t call = 0; call < kCheckedCalls; ++call) {
    double change = 0;
    for (uint32_t k = 0; k < kCheckedIterations; ++k) {
      for (int64_t row = low; row < high; ++row) {
        const float *mid = &old[static_cast<size_t>((row - low + 1) * width + 1)];
        const float *up = mid - width, *down = mid + width;
        float *to = &now[static_cast<size_t>((row - low + 1) * width + 1)];
        for (int64_t c = 0; c < n; ++c)
          to[c] = ((up[c] + down[c]) + (mid[c - 1] + mid[c + 1])) / 4;
        if (k + 1 < kCheckedIterations || row < mine || row >= end)
          continue;
        for (int64_t c = 0; c < n; ++c)
          change += (double(to[c]) - mid[c]) * (double(to[c]) - mid[c]);
      }
      old.swap(now);
    }
    reference.change.push_back(rank.together.sum(change, rank.rank));
  }
  for (int64_t row = mine; row < end; ++row) {
    const auto from = old.begin() + (row - low + 1) * width + 1;
    reference.rows.insert(reference.rows.end(), from, from + n);
  }
  return reference;
}

struct Form {
  const char *name;
  JacobiMaker make;
  bool isCaptured, isChecked;
};
constexpr std::array<Form, 9> kForms = {{
    {"partitioned", partitionedJacobi, false, true},
    {"partitioned, graph", partitionedJacobi, true, true},
    {"by hand, graph", jacobiByHand, true, true},
    {"NCCL", ncclJacobi, false, true},
    {"NCCL, graph", ncclJacobi, true, true},
    {"NCCL overlapped", overlappedJacobi, false, true},
    {"NCCL overlapped, graph", overlappedJacobi, true, true},
    {"host waits", synchronisedJacobi, false, true},
    {"cells alone, graph", jacobiAlone, true, false},
}};
constexpr size_t kOurs = 0, kByHand = 2, kNccl = 3, kHost = 7;

/// A form on one rank, ready to be called.
class Runner {
public:
  /// Null: it is not there.
  Runner(Rank &rank, const Form &form, const JacobiShape &shape)
      : rank(rank), shape(shape), form(form), jacobi(form.make(rank, shape)) {
    if (!jacobi)
      return;
    std::vector<float> rows(shape.elements());
    for (uint32_t row = 0; row < shape.rows(); ++row)
      for (uint32_t c = 0; c < shape.n; ++c)
        rows[uint64_t{row} * shape.n + c] = valueAt(shape.firstRow(shape.rank) + row, c);
    check(cudaMemcpy(jacobi->grid(), rows.data(), rows.size() * sizeof(float), cudaMemcpyDefault),
          "cudaMemcpy");
    check(cudaMallocHost(&change, sizeof(float)), "cudaMallocHost");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (form.isCaptured)
      graph.emplace(rank.stream, [&] { jacobi->enqueue(rank.stream); });
  }
  ~Runner() {
    if (std::uncaught_exceptions() == 0)
      rank.together.meet(); // nobody stores to this rank's memory any more
    graph.reset();
    jacobi.reset();
    cudaFreeHost(change);
  }
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  bool isThere() const { return jacobi != nullptr; }
  /// So many iterations, and what the last one changes is where the host sees it.
  void call() {
    if (graph)
      graph->launch(rank.stream);
    else
      jacobi->enqueue(rank.stream);
    check(cudaMemcpyAsync(change, jacobi->change(), sizeof(float), cudaMemcpyDefault, rank.stream),
          "cudaMemcpyAsync");
  }
  void compare(const Reference &reference) {
    for (const double expected : reference.change) {
      rank.together.meet();
      call();
      check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
      if (!(std::abs(*change - expected) <= kMostError * expected))
        wrong("the change is " + std::to_string(*change) + ", not " + std::to_string(expected));
    }
    std::vector<float> rows(shape.elements());
    check(cudaMemcpy(rows.data(), jacobi->grid(), rows.size() * sizeof(float), cudaMemcpyDefault),
          "cudaMemcpy");
    const auto found = std::ranges::mismatch(rows, reference.rows);
    if (found.in1 != rows.end())
      wrong("value " + std::to_string(found.in1 - rows.begin()) + " is " +
            std::to_string(*found.in1) + ", not " + std::to_string(*found.in2));
  }

private:
  [[noreturn]] void wrong(const std::string &what) const {
    throw std::runtime_error(std::string(form.name) + ", n = " + std::to_string(shape.n) + ": " +
                             what);
  }

  Rank &rank;
  const JacobiShape shape;
  const Form &form;
  std::unique_ptr<JacobiForm> jacobi;
  std::optional<Graph> graph;
  float *change = nullptr;
};

/// Microseconds for an iteration; 0: there is none.
double measured(Rank &rank, const Form &form, JacobiShape shape, const Reference &reference,
                bool onlyChecks) {
  if (form.isChecked) {
    shape.iterations = kCheckedIterations;
    Runner runner(rank, form, shape);
    if (!runner.isThere())
      return 0;
    runner.compare(reference);
  }
  if (onlyChecks)
    return 0;
  shape.iterations = kIterations;
  Runner runner(rank, form, shape);
  for (int i = 0; i < 2; ++i) {
    runner.call();
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
  }
  return rank.median(kTimes, [&] { runner.call(); }) / kIterations;
}

void printHead(const Rank &rank) {
  std::string head = "| n |", line = "|---|";
  for (const Form &form : kForms) {
    head += std::string(" ") + form.name + " |";
    line += "---|";
  }
  rank.print("Jacobi, us an iteration" +
             (rank.nccl ? ", NCCL " + rank.nccl->version() : std::string(", no NCCL")) + "\n\n" +
             head + " host waits / partitioned | best NCCL / partitioned | limit: best NCCL / by " +
             "hand | partitioned / by hand |\n" + line + "---|---|---|---|\n");
}

void row(Rank &rank, const Run &run) {
  if (run.isFirst)
    printHead(rank);
  // Ranks that share a device wait for its slices of time.
  const auto n = static_cast<uint32_t>(run.size);
  if (rank.ranksOfDevice > 1 && n > kLargestShared)
    return;
  const JacobiShape shape = {n, kCheckedIterations, rank.rank, rank.size, rank.ranksOfDevice};
  const Reference reference = referenceOf(shape, rank);
  std::vector<double> times;
  std::string cells = "| " + std::to_string(n) + " |";
  for (const Form &form : kForms) {
    times.push_back(measured(rank, form, shape, reference, run.onlyChecks));
    cells += run.onlyChecks ? (form.isChecked ? " right |" : " - |") : cell(times.back());
  }
  const double ours = best({times.begin() + kOurs, times.begin() + kByHand});
  const double nccl = best({times.begin() + kNccl, times.begin() + kHost});
  rank.print(cells + ratio(times[kHost], ours) + ratio(nccl, ours) + ratio(nccl, times[kByHand]) +
             ratio(ours, times[kByHand]) + "\n");
}

} // namespace

int main(int argc, char **argv) {
  return runRanks(argc, argv, sizesFrom(kSmallest, kLargest, 2), row);
}
