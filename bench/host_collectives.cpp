// A collective of floats by OCCL (occlCall), by Open MPI (its blocking call) and, as a bound, plain
// copying, in the same processes on the same data; start it by mpirun.
//
// The three take turns, a stretch of operations each, of which the first ones do not count: so each
// finds the caches as it left them itself. A barrier comes before every operation; its time is that
// of the slowest rank. Rank 0 prints one row of a Markdown table for each size.
#include "bench/collective_kind.h"
#include "runtime/api/occl.h"
#include "tools/demo/plans_by_size.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace occl::bench {
namespace {

struct Options {
  std::string collective;
  std::vector<std::string> plans;
  uint64_t minBytes = 64, maxBytes = 64 << 20;
  bool privateBuffers = false;
};

[[noreturn]] void stop(const std::string &message) {
  fmt::print(stderr, "host_collectives: {}\n", message);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void require(occlResult_t result, const char *what) {
  if (result != occlSuccess)
    stop(fmt::format("{}: {}", what, occlGetLastError()));
}

/// What the operations of one implementation took, in seconds.
struct Times {
  std::vector<double> samples;

  /// The slowest rank's time of each operation, in ascending order; only rank 0 has the result.
  Times slowest() const {
    Times result{std::vector<double>(samples.size())};
    MPI_Reduce(samples.data(), result.samples.data(), static_cast<int>(samples.size()), MPI_DOUBLE,
               MPI_MAX, 0, MPI_COMM_WORLD);
    std::sort(result.samples.begin(), result.samples.end());
    return result;
  }
  double median() const { return samples[samples.size() / 2]; }
  double p99() const { return samples[samples.size() * 99 / 100]; }
};

/// Of one contender.
struct Buffers {
  std::span<float> input, output;

  void clearOutput(const Workload &work) const {
    if (work.isInPlace())
      std::ranges::copy(input, output.begin());
    else
      std::ranges::fill(output, 0.0f);
  }
  const float *from(const Workload &work) const {
    return work.isInPlace() ? output.data() : input.data();
  }
  void check(const char *whose, const Workload &work) const {
    for (size_t i = 0; i < output.size(); ++i)
      if (output[i] != work.expected(i))
        stop(fmt::format("{}: element {} is {}, expected {}", whose, i, output[i],
                         work.expected(i)));
  }
  /// As many bytes as the smaller buffer has, over and over: as large as the larger one.
  void copy() const {
    const size_t step = std::min(input.size(), output.size());
    for (size_t done = 0; done < std::max(input.size(), output.size()); done += step)
      std::memcpy(output.data() + done % output.size(), input.data() + done % input.size(),
                  step * sizeof(float));
  }
};

/// How many operations a size gets: enough for a steady median, in bounded time.
struct Schedule {
  uint32_t rounds, stretch; // stretches of each contender, operations of one
  uint32_t unmeasured;      // of a stretch, the first ones
};

Schedule scheduleFor(uint64_t bytes, uint32_t numRanks) {
  const uint64_t total = bytes * numRanks;
  if (total >= 64 << 20)
    return {3, 5, 1};
  if (total >= 4 << 20)
    return {5, 15, 3};
  return {10, total >= 256 << 10 ? 40u : 120u, 20};
}

class Comparison {
public:
  explicit Comparison(const Options &options);
  ~Comparison();
  /// The first size that is run needs `longWarmUp`: processors are still being shared out.
  void run(uint64_t bytes, bool longWarmUp);

private:
  Buffers allocate(const Workload &work, bool isShared);
  void release(const Buffers &buffers, bool isShared);
  occlCall_t callOf(const Workload &work, const Buffers &buffers) const;
  template <class Operation>
  void stretch(const Schedule &schedule, Times &times, Operation operation);
  void printRow(uint64_t bytes, const Times &own, const Times &peer, const Times &copying) const;

  const Options &options;
  StandardCollective kind;
  occlComm_t comm = nullptr;
  demo::PlansBySize plans;
  uint32_t rank = 0, numRanks = 0;
};

Comparison::Comparison(const Options &options) : options(options) {
  auto named = comparedCollective(options.collective);
  if (!named)
    stop("there is no collective " + options.collective);
  kind = *named;
  require(occlCommInitFromEnv(&comm, nullptr), "joining the other ranks");
  require(occlCommRank(comm, &rank), "rank");
  require(occlCommSize(comm, &numRanks), "size");
  for (const std::string &path : options.plans)
    require(plans.load(path), path.c_str());
  if (rank == 0)
    fmt::print(
        "| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI "
        "/ "
        "OCCL | copying / OCCL | verdict "
        "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
}

Comparison::~Comparison() { occlCommDestroy(comm); }

Buffers Comparison::allocate(const Workload &work, bool isShared) {
  auto one = [&](uint64_t elements) -> std::span<float> {
    void *memory = nullptr;
    if (isShared)
      require(occlMemAlloc(comm, elements * sizeof(float), &memory), "allocating a buffer");
    else
      memory = std::aligned_alloc(4096, (elements * sizeof(float) + 4095) / 4096 * 4096);
    return {static_cast<float *>(memory), elements};
  };
  Buffers buffers{one(work.inputElements()), one(work.outputElements())};
  std::ranges::copy(work.makeInput(), buffers.input.begin());
  buffers.clearOutput(work);
  return buffers;
}

void Comparison::release(const Buffers &buffers, bool isShared) {
  for (std::span<float> buffer : {buffers.input, buffers.output})
    if (isShared)
      require(occlMemFree(comm, buffer.data()), "freeing a buffer");
    else
      std::free(buffer.data());
}

occlCall_t Comparison::callOf(const Workload &work, const Buffers &buffers) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plans.find(work.count() * sizeof(float));
  if (!call.plan)
    stop(fmt::format("no --plan is meant for {} bytes", work.count() * sizeof(float)));
  call.sendBuffer = buffers.from(work);
  call.recvBuffer = buffers.output.data();
  call.count = work.count();
  call.name = options.collective.c_str();
  return call;
}

template <class Operation>
void Comparison::stretch(const Schedule &schedule, Times &times, Operation operation) {
  for (uint32_t i = 0; i < schedule.stretch; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    operation();
    const double time = MPI_Wtime() - begin;
    if (i >= schedule.unmeasured)
      times.samples.push_back(time);
  }
}

void Comparison::run(uint64_t bytes, bool longWarmUp) {
  const uint64_t unit = numRanks * sizeof(float);
  const Workload work{kind, rank, numRanks, (bytes + unit - 1) / unit * numRanks};
  const bool areOursShared = !options.privateBuffers;
  const Buffers ours = allocate(work, areOursShared), theirs = allocate(work, false);
  const occlCall_t call = callOf(work, ours);
  auto runOurs = [&] { require(occlCall(comm, &call, nullptr), "calling"); };
  auto runTheirs = [&] { work.runMpi(theirs.from(work), theirs.output.data()); };
  const Schedule schedule = scheduleFor(bytes, numRanks);
  Times own, peer, copied;
  auto round = [&] {
    stretch(schedule, own, runOurs);
    stretch(schedule, peer, runTheirs);
    stretch(schedule, copied, [&] { theirs.copy(); });
  };
  for (uint32_t i = 0; longWarmUp && i < 2 * schedule.rounds; ++i)
    round();
  own = peer = copied = {};
  for (uint32_t i = 0; i < schedule.rounds; ++i)
    round();
  theirs.clearOutput(work);
  runTheirs();
  theirs.check("Open MPI", work);
  ours.clearOutput(work);
  runOurs();
  ours.check("OCCL", work);
  release(ours, areOursShared);
  release(theirs, false);
  printRow(bytes, own.slowest(), peer.slowest(), copied.slowest());
}

void Comparison::printRow(uint64_t bytes, const Times &own, const Times &peer,
                          const Times &copying) const {
  if (rank != 0)
    return;
  const double byPeer = peer.median() / own.median(), byCopying = copying.median() / own.median();
  const double goal = kind != StandardCollective::AllReduce || numRanks < 8 ? 1
                      : bytes == 1 << 20                                    ? 1.4
                                                                            : 2;
  fmt::print(
      "| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {} |\n",
      options.collective, numRanks, bytes, own.median() * 1e6, own.p99() * 1e6, peer.median() * 1e6,
      peer.p99() * 1e6, copying.median() * 1e6, byPeer, byCopying,
      byPeer >= goal     ? "pass"
      : byCopying >= 0.9 ? "as copying"
      : byPeer < 1       ? "slower"
                         : fmt::format("below {:.1f}", goal));
  std::fflush(stdout);
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  CLI::App app("Compares a collective with Open MPI's; start it by mpirun.", "host_collectives");
  occl::bench::Options options;
  app.add_option("--collective", options.collective,
                 "allreduce, allgather, reducescatter, broadcast or alltoall")
      ->required();
  app.add_option("--plan", options.plans, "the first that suits a size is used")->required();
  app.add_option("--min-bytes", options.minBytes, "the smallest size; default 64");
  app.add_option("--max-bytes", options.maxBytes, "the largest size; default 64 MiB");
  app.add_flag("--private-buffers", options.privateBuffers,
               "OCCL's buffers are of malloc, too, instead of occlMemAlloc");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  {
    occl::bench::Comparison comparison(options);
    bool isFirst = true;
    for (uint64_t bytes : {64, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10,
                           1 << 20, 4 << 20, 16 << 20, 64 << 20})
      if (options.minBytes <= bytes && bytes <= options.maxBytes)
        comparison.run(bytes, std::exchange(isFirst, false));
  }
  MPI_Finalize();
}
