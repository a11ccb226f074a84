// A collective of floats by OCCL, by Open MPI and, as a bound, plain copying, in the same processes
// on the same data; start it by mpirun.
//
// The three take turns, operation by operation. A barrier comes before every operation; its time is
// that of the slowest rank. Rank 0 prints one row of a Markdown table for each size.
#include "bench/collective_kind.h"
#include "runtime/communicator/occl.h"

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

class Comparison {
public:
  explicit Comparison(const Options &options);
  ~Comparison();
  /// The first size that is run needs `longWarmUp`: processors are still being shared out.
  void run(uint64_t bytes, bool longWarmUp);

private:
  std::span<float> allocate(uint64_t elements);
  void release(std::span<float> buffer);
  void registerCount(uint64_t id, const Workload &work);
  template <class Operation> double time(Operation operation);
  void clearOutput(const Workload &work) const;
  void check(const char *whose, const Workload &work) const;
  void printRow(uint64_t bytes, const Times &own, const Times &peer, const Times &copying) const;

  const Options &options;
  CollectiveKind kind;
  occlComm_t comm = nullptr;
  std::vector<occlPlan_t> plans;
  uint32_t rank = 0, numRanks = 0;
  std::span<float> input, output; // what MPI is given, too
};

Comparison::Comparison(const Options &options) : options(options) {
  auto named = collectiveKindOf(options.collective);
  if (!named)
    stop("there is no collective " + options.collective);
  kind = *named;
  require(occlCommInitFromEnv(&comm, nullptr), "joining the other ranks");
  require(occlCommRank(comm, &rank), "rank");
  require(occlCommSize(comm, &numRanks), "size");
  for (const std::string &path : options.plans)
    require(occlPlanLoad(path.c_str(), &plans.emplace_back()), path.c_str());
  if (rank == 0)
    fmt::print(
        "| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI "
        "/ "
        "OCCL | copying / OCCL | verdict "
        "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
}

Comparison::~Comparison() {
  occlCommDestroy(comm);
  for (occlPlan_t plan : plans)
    occlPlanDestroy(plan);
}

std::span<float> Comparison::allocate(uint64_t elements) {
  void *memory = nullptr;
  if (options.privateBuffers)
    memory = std::aligned_alloc(4096, (elements * sizeof(float) + 4095) / 4096 * 4096);
  else
    require(occlMemAlloc(comm, elements * sizeof(float), &memory), "allocating a buffer");
  return {static_cast<float *>(memory), elements};
}

void Comparison::release(std::span<float> buffer) {
  if (options.privateBuffers)
    std::free(buffer.data());
  else
    require(occlMemFree(comm, buffer.data()), "freeing a buffer");
}

void Comparison::registerCount(uint64_t id, const Workload &work) {
  occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
  collective.id = id;
  collective.name = options.collective.c_str();
  collective.plans = plans.data();
  collective.numPlans = static_cast<uint32_t>(plans.size());
  collective.count = work.count();
  require(occlRegister(comm, &collective), "registering");
}

template <class Operation> double Comparison::time(Operation operation) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  operation();
  return MPI_Wtime() - begin;
}

void Comparison::clearOutput(const Workload &work) const {
  if (work.isInPlace())
    std::ranges::copy(input, output.begin());
  else
    std::ranges::fill(output, 0.0f);
}

void Comparison::check(const char *whose, const Workload &work) const {
  for (size_t i = 0; i < output.size(); ++i)
    if (output[i] != work.expected(i))
      stop(fmt::format("{}: element {} is {}, expected {}", whose, i, output[i], work.expected(i)));
}

/// Enough operations for a steady median, in bounded time.
uint32_t operationsFor(uint64_t bytes, uint32_t numRanks) {
  uint64_t total = bytes * numRanks;
  if (total >= 64 << 20)
    return 10;
  return total >= 4 << 20 ? 60 : total >= 256 << 10 ? 300 : 1000;
}

void Comparison::run(uint64_t bytes, bool longWarmUp) {
  const uint64_t unit = numRanks * sizeof(float), id = bytes;
  const Workload work{kind, rank, numRanks, (bytes + unit - 1) / unit * numRanks};
  input = allocate(work.inputElements());
  output = allocate(work.outputElements());
  std::ranges::copy(work.makeInput(), input.begin());
  clearOutput(work);
  registerCount(id, work);
  const float *from = work.isInPlace() ? output.data() : input.data();
  auto ours = [&] {
    occlRequest_t request;
    require(occlSubmit(comm, id, from, output.data(), nullptr, nullptr, &request), "submit");
    require(occlWait(comm, request), "wait");
  };
  auto peers = [&] { work.runMpi(from, output.data()); };
  // As many bytes as the smaller buffer has, over and over: as large as the larger one.
  auto copying = [&] {
    uint64_t step = std::min(input.size(), output.size()) * sizeof(float);
    for (uint64_t done = 0; done < work.elements * sizeof(float); done += step) {
      auto *to = reinterpret_cast<char *>(output.data()) + done % (output.size() * sizeof(float));
      auto *from = reinterpret_cast<char *>(input.data()) + done % (input.size() * sizeof(float));
      std::memcpy(to, from, step);
    }
  };
  const uint32_t operations = operationsFor(bytes, numRanks),
                 warmUp = longWarmUp ? 2 * operations : std::max(2u, operations / 20);
  Times own, peer, copied;
  for (uint32_t i = 0; i < operations + warmUp; ++i) {
    double ownTime = time(ours), peerTime = time(peers), copyTime = time(copying);
    if (i >= warmUp) {
      own.samples.push_back(ownTime);
      peer.samples.push_back(peerTime);
      copied.samples.push_back(copyTime);
    }
  }
  clearOutput(work);
  peers();
  check("Open MPI", work);
  clearOutput(work);
  ours();
  check("OCCL", work);
  require(occlDeregister(comm, id), "deregistering");
  release(input);
  release(output);
  printRow(bytes, own.slowest(), peer.slowest(), copied.slowest());
}

void Comparison::printRow(uint64_t bytes, const Times &own, const Times &peer,
                          const Times &copying) const {
  if (rank != 0)
    return;
  const double byPeer = peer.median() / own.median(), byCopying = copying.median() / own.median();
  const double goal = kind != CollectiveKind::AllReduce || numRanks < 8 ? 1
                      : bytes == 1 << 20                                ? 1.4
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
               "buffers of malloc instead of occlMemAlloc");
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
