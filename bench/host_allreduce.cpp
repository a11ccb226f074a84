// All-reduce of floats by OCCL and by Open MPI, in the same processes on the same data; start it by
// mpirun.
//
// The two take turns, operation by operation. A barrier comes before every operation; its time is
// that of the slowest rank. Rank 0 prints one row of a Markdown table for each size.
#include "runtime/communicator/occl.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/core.h>
#include <mpi.h>
#include <numeric>

namespace occl::bench {
namespace {

struct Options {
  std::vector<std::string> plans;
  uint64_t maxBytes = 64 << 20;
};

[[noreturn]] void stop(const std::string &message) {
  fmt::print(stderr, "host_allreduce: {}\n", message);
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

  /// The slowest rank's time of each operation; only rank 0 has the result.
  Times slowest() const {
    Times result{std::vector<double>(samples.size())};
    MPI_Reduce(samples.data(), result.samples.data(), static_cast<int>(samples.size()), MPI_DOUBLE,
               MPI_MAX, 0, MPI_COMM_WORLD);
    return result;
  }
  double mean() const {
    return std::accumulate(samples.begin(), samples.end(), 0.0) /
           static_cast<double>(samples.size());
  }
  double median() const {
    std::vector<double> sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

class Comparison {
public:
  explicit Comparison(const Options &options);
  ~Comparison();
  void run(uint64_t bytes);

private:
  void registerCount(uint64_t id, uint64_t count);
  template <class Operation> double time(Operation operation);
  void fill();
  void check(const char *whose) const;
  void printRow(uint64_t bytes, const Times &own, const Times &peer) const;

  occlComm_t comm = nullptr;
  std::vector<occlPlan_t> plans;
  uint32_t rank = 0, numRanks = 0;
  std::vector<float> input, output;
};

Comparison::Comparison(const Options &options) {
  require(occlCommInitFromEnv(&comm, nullptr), "joining the other ranks");
  require(occlCommRank(comm, &rank), "rank");
  require(occlCommSize(comm, &numRanks), "size");
  for (const std::string &path : options.plans)
    require(occlPlanLoad(path.c_str(), &plans.emplace_back()), path.c_str());
  if (rank == 0)
    fmt::print("| ranks | bytes | OCCL us | Open MPI us | OCCL GB/s | Open MPI GB/s | Open MPI / "
               "OCCL | of the means |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n");
}

Comparison::~Comparison() {
  occlCommDestroy(comm);
  for (occlPlan_t plan : plans)
    occlPlanDestroy(plan);
}

void Comparison::registerCount(uint64_t id, uint64_t count) {
  occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
  collective.id = id;
  collective.name = "all-reduce";
  collective.plans = plans.data();
  collective.numPlans = static_cast<uint32_t>(plans.size());
  collective.count = count;
  require(occlRegister(comm, &collective), "registering");
}

template <class Operation> double Comparison::time(Operation operation) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  operation();
  return MPI_Wtime() - begin;
}

void Comparison::fill() {
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>((i + 1) % 1024 * (rank + 1));
}

void Comparison::check(const char *whose) const {
  const uint64_t factor = uint64_t(numRanks) * (numRanks + 1) / 2;
  for (size_t i = 0; i < output.size(); ++i)
    if (output[i] != static_cast<float>((i + 1) % 1024 * factor))
      stop(fmt::format("{}: element {} is {}, expected {}", whose, i, output[i],
                       (i + 1) % 1024 * factor));
}

/// Enough operations for a steady median, in bounded time.
uint32_t operationsFor(uint64_t bytes) {
  if (bytes >= 16 << 20)
    return 10;
  return bytes >= 1 << 20 ? 60 : bytes >= 64 << 10 ? 300 : 1000;
}

void Comparison::run(uint64_t bytes) {
  const uint64_t count = bytes / sizeof(float), id = bytes;
  input.resize(count);
  output.assign(count, 0);
  fill();
  registerCount(id, count);
  auto ours = [&] {
    occlRequest_t request;
    require(occlSubmit(comm, id, input.data(), output.data(), nullptr, nullptr, &request),
            "submit");
    require(occlWait(comm, request), "wait");
  };
  auto peers = [&] {
    MPI_Allreduce(input.data(), output.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  };
  const uint32_t operations = operationsFor(bytes), warmUp = std::max(2u, operations / 20);
  Times own, peer;
  for (uint32_t i = 0; i < operations + warmUp; ++i) {
    double ownTime = time(ours), peerTime = time(peers);
    if (i >= warmUp) {
      own.samples.push_back(ownTime);
      peer.samples.push_back(peerTime);
    }
  }
  peers();
  check("Open MPI");
  std::fill(output.begin(), output.end(), 0.0f);
  ours();
  check("OCCL");
  require(occlDeregister(comm, id), "deregistering");
  printRow(bytes, own.slowest(), peer.slowest());
}

void Comparison::printRow(uint64_t bytes, const Times &own, const Times &peer) const {
  if (rank != 0)
    return;
  auto speed = [bytes](double seconds) { return static_cast<double>(bytes) * 1e-9 / seconds; };
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", numRanks, bytes,
             own.median() * 1e6, peer.median() * 1e6, speed(own.median()), speed(peer.median()),
             peer.median() / own.median(), peer.mean() / own.mean());
  std::fflush(stdout);
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  CLI::App app("Compares all-reduce with Open MPI; start it by mpirun.", "host_allreduce");
  occl::bench::Options options;
  app.add_option("--plan", options.plans, "the first that suits a size is used")->required();
  app.add_option("--max-bytes", options.maxBytes, "the largest size; default 64 MiB");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  {
    occl::bench::Comparison comparison(options);
    for (uint64_t bytes : {64, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10,
                           1 << 20, 4 << 20, 16 << 20, 64 << 20})
      if (bytes <= options.maxBytes)
        comparison.run(bytes);
  }
  MPI_Finalize();
}
