// gpu_loss <ranks> [check]: the gradient of the binary cross-entropy loss of N floats, and its sum
// over all ranks, each a process. Every form's sums are compared with what the host computes as
// doubles before it is timed: they differ by at most a millionth for each rank, of values up to
// one. A row for each size: microseconds for a step, and ratios; the limit is what the best form
// that is not partitioned takes, by the longer of gradient and sum alone.
#include "bench/gpu/applications/loss_plain.h"
#include "bench/gpu/applications/rank.h"
#include "examples/partitioned/check.h"
#include "examples/partitioned/loss.h"
#include "examples/partitioned/side_stream.h"
#include "runtime/api/occl_collectives.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace occl::bench;
using occl::examples::check;
using occl::examples::LossShape;
using occl::examples::LossStep;

namespace {

constexpr uint64_t kSmallest = 4 << 10, kLargest = 256 << 20, kLargestShared = 4 << 20;
constexpr double kMostError = 1e-6;
/// Of more elements every so many are compared.
constexpr uint64_t kAllCompared = 4 << 20, kSampled = 61;
/// What the library's kernel is left, of multiprocessors.
constexpr uint32_t kLeft = 16;

float logitOf(uint32_t rank, uint64_t i) {
  return static_cast<float>((i * 2654435761u + rank * 40503u) >> 7 & 1023) / 64.f - 8.f;
}
float labelOf(uint32_t rank, uint64_t i) {
  return static_cast<float>((i * 40503u + rank * 7919u) >> 5 & 1);
}

/// How the partitioned form is set.
struct Setting {
  const char *name;
  int64_t partitions;
  uint64_t rounds;
  bool leaves, isInParts;
};
constexpr Setting kSettings[] = {
    {"64", 64, 0, true, true},
    {"256", 256, 0, true, true},
    {"1024", 1024, 0, true, true},
    {"256 on all multiprocessors", 256, 0, false, true},
    {"256 in order", 256, 0, true, false},
    {"256 in order, 4 rounds", 256, 4, true, false},
};

class Loss {
public:
  Loss(Rank &rank, uint64_t bytes) : rank(rank), count(bytes / sizeof(float)) {
    for (float **memory : {&logits, &labels})
      check(cudaMalloc(memory, bytes), "cudaMalloc");
    std::vector<float> host(count);
    for (uint64_t i = 0; i < host.size(); ++i)
      host[i] = logitOf(rank.rank, i);
    check(cudaMemcpy(logits, host.data(), bytes, cudaMemcpyDefault), "cudaMemcpy");
    for (uint64_t i = 0; i < host.size(); ++i)
      host[i] = labelOf(rank.rank, i);
    check(cudaMemcpy(labels, host.data(), bytes, cudaMemcpyDefault), "cudaMemcpy");
    for (float **memory : {&own.gradient, &own.sum}) {
      void *made = nullptr;
      check(occlMemAlloc(rank.comm, bytes, &made), "occlMemAlloc");
      *memory = static_cast<float *>(made);
    }
    for (Results *results : {&plain, &symmetric})
      for (float **memory : {&results->gradient, &results->sum})
        if (rank.nccl)
          *memory = static_cast<float *>(
              rank.nccl->allocate(std::max<uint64_t>(bytes, 2 << 20), results == &symmetric));
  }

  static void printHead(const Rank &rank) {
    rank.print("\nGradient of a loss and its sum over all ranks, us" +
               (rank.nccl ? ", NCCL " + rank.nccl->version() : std::string(", no NCCL")) +
               "\n\n| bytes | partitioned | setting | occlCall | graph | host waits | NCCL, graph "
               "| symmetric | in bands | gradient alone | sum alone | host waits / partitioned | "
               "occlCall / partitioned | best NCCL / partitioned | limit |\n|---|---|---|---|---|"
               "---|---|---|---|---|---|---|---|---|---|\n");
  }

  void row(bool onlyChecks) {
    isTimed = !onlyChecks;
    makeReference();
    // All kernels are loaded, and no epoch is open.
    callOcclAfter();
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    const auto [ours, setting] = bestSetting();
    const double call = inStream(own, [&] { callOcclAfter(); });
    const double callGraph = inGraph(own, [&] { callOcclAfter(); });
    const double host = inStream(own, [&] {
      compute(own, 0, count, rank.stream);
      check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
      sumByOccl();
      check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    });
    double ncclPlain = 0, ncclSymmetric = 0, ncclBands = 0;
    if (rank.nccl) {
      ncclPlain = inGraph(plain, [&] { inBands(plain, 1); });
      ncclSymmetric = inGraph(symmetric, [&] { inBands(symmetric, 1); });
      std::vector<double> all;
      for (const uint32_t bands : {2, 4, 8})
        if (count % (4 * bands) == 0)
          all.push_back(inGraph(symmetric, [&] { inBands(symmetric, bands); }));
      ncclBands = best(all);
    }
    const double gradient = timed([&] { compute(own, 0, count, rank.stream); });
    const double sum = timed([&] { sumByOccl(); });
    const double nccl = best({ncclPlain, ncclSymmetric, ncclBands});
    rank.print("| " + std::to_string(count * sizeof(float)) + " |" + shown(ours) + " " + setting +
               " |" + shown(call) + shown(callGraph) + shown(host) + cellOfNccl(ncclPlain) +
               cellOfNccl(ncclSymmetric) + cellOfNccl(ncclBands) + cell(gradient) + cell(sum) +
               ratio(host, ours) + ratio(best({call, callGraph}), ours) + ratio(nccl, ours) +
               ratio(best({nccl, call, callGraph}), std::max(gradient, sum)) + "\n");
  }

private:
  struct Results {
    float *gradient = nullptr, *sum = nullptr;
  };
  using Enqueue = std::function<void()>;

  std::string shown(double time) const { return isTimed ? cell(time) : " right |"; }
  std::string cellOfNccl(double time) const { return rank.nccl ? shown(time) : " - |"; }

  void compute(const Results &to, uint64_t begin, uint64_t end, cudaStream_t stream) {
    check(static_cast<cudaError_t>(launchLoss({logits, labels, to.gradient}, begin, end, stream)),
          "launchLoss");
  }
  void sumByOccl() {
    check(occlAllReduce(own.gradient, own.sum, count, occlFloat32, occlSum, rank.comm, rank.stream),
          "occlAllReduce");
  }
  void callOcclAfter() {
    compute(own, 0, count, rank.stream);
    sumByOccl();
  }
  /// Each band is summed in a second stream while the next one is computed.
  void inBands(const Results &to, uint32_t bands) {
    const uint64_t each = count / bands;
    for (uint32_t band = 0; band < bands; ++band) {
      compute(to, band * each, (band + 1) * each, rank.stream);
      if (bands > 1)
        beside.follow(rank.stream);
      rank.nccl->enqueue(Kind::AllReduce, to.gradient + band * each, to.sum + band * each, each,
                         bands > 1 ? beside.stream : rank.stream);
    }
    if (bands > 1)
      beside.precede(rank.stream);
  }

  /// The fastest of the partitioned form, each compared.
  std::pair<double, std::string> bestSetting() {
    double least = 0;
    std::string name = "-";
    for (const Setting &setting : kSettings) {
      if (!rank.begin(static_cast<uint32_t>(&setting - kSettings)))
        continue;
      const int64_t partitions =
          std::min<int64_t>(setting.partitions, static_cast<int64_t>(count / 256));
      LossShape shape = {count, partitions, setting.rounds,
                         setting.isInParts && partitions % rank.size == 0 ? rank.size : 1, 0};
      shape.blocks = std::min(static_cast<uint32_t>(partitions),
                              rank.multiprocessors - (setting.leaves ? kLeft : 0));
      const auto step = rank.madeUnlessRefused<LossStep>(setting.name, shape, logits, labels,
                                                         own.gradient, own.sum);
      if (!step)
        continue;
      const double time =
          named(setting.name, [&] { return inStream(own, [&] { step->enqueue(rank.stream); }); });
      if (time != 0 && (least == 0 || time < least)) {
        least = time;
        name = setting.name;
      }
    }
    rank.together.meet();
    rank.endSettings();
    return {least, name};
  }

  double inStream(const Results &results, const Enqueue &enqueue) {
    compare(results, enqueue);
    return timed(enqueue);
  }
  double timed(const Enqueue &enqueue) { return isTimed ? rank.inStream(enqueue) : 0; }
  double inGraph(const Results &results, const Enqueue &enqueue) {
    enqueue(); // makes what is made once
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    {
      const Graph one(rank.stream, enqueue);
      compare(results, [&] { one.launch(rank.stream); });
    }
    return isTimed ? rank.inGraph(enqueue) : 0;
  }

  uint64_t step() const { return count > kAllCompared ? kSampled : 1; }
  void makeReference() {
    reference.clear();
    for (uint64_t i = 0; i < count; i += step()) {
      double sum = 0;
      for (uint32_t r = 0; r < rank.size; ++r)
        sum += 1 / (1 + std::exp(-double(logitOf(r, i)))) - labelOf(r, i);
      reference.push_back(sum);
    }
  }
  void compare(const Results &results, const Enqueue &enqueue) {
    std::vector<float> host(count);
    for (float *memory : {results.gradient, results.sum})
      check(cudaMemsetAsync(memory, 0x7f, count * sizeof(float), rank.stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    rank.together.meet();
    enqueue();
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    check(cudaMemcpy(host.data(), results.sum, count * sizeof(float), cudaMemcpyDefault),
          "cudaMemcpy");
    for (uint64_t i = 0, at = 0; i < count; i += step(), ++at)
      if (!(std::abs(host[i] - reference[at]) <= kMostError * rank.size))
        throw std::runtime_error("sum " + std::to_string(i) + " of " + std::to_string(count) +
                                 " is " + std::to_string(host[i]) + ", not " +
                                 std::to_string(reference[at]));
  }

  Rank &rank;
  bool isTimed = true;
  const uint64_t count;
  float *logits = nullptr, *labels = nullptr;
  Results own, plain, symmetric;
  std::vector<double> reference;
  occl::examples::SideStream beside;
};

} // namespace

int main(int argc, char **argv) {
  return runRanks(argc, argv, sizesFrom(kSmallest, kLargest, 4), [](Rank &rank, const Run &run) {
    if (run.isFirst)
      Loss::printHead(rank);
    // Ranks that share a device wait for its slices of time.
    if (rank.ranksOfDevice == 1 || run.size <= kLargestShared)
      Loss(rank, run.size).row(run.onlyChecks);
  });
}
