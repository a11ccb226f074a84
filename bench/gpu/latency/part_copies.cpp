// part_copies: marks of a stream by a kernel and by a copy engine. Rank 0 sends to rank 1, threads,
// on as many devices as there are. First an epoch from its first mark on until all is stored; then
// a product of cuBLAS beside marks that follow each other, and what the marks take then. Medians,
// microseconds; CSV.
#include "bench/gpu/latency/latency_ranks.h"
#include "bench/gpu/latency/part_kernels.h"

#include "runtime/api/occl_partitioned_device.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace occl::bench {
namespace {

constexpr uint64_t kMiB = 1 << 20, kMost = 64 * kMiB;
constexpr uint32_t kTimes = 21;
/// What computes: thread blocks for each multiprocessor, and their steps.
constexpr uint32_t kWaves = 50, kSteps = 5000;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void check(int error, const char *what) { require(error == cudaSuccess, what); }
void done(occlResult_t result, const char *what) { require(result == occlSuccess, what); }

/// Both sides of a transfer from rank 0 to rank 1. isCopied: whether the host sees all marks.
struct Transfer {
  const std::vector<LatencyRank> &ranks;
  const int64_t partitions;
  occlPart_t send = nullptr, receive = nullptr;
  /// Of rank 0: its thread blocks come before those of a computation that still wait for room.
  cudaStream_t stream = nullptr;

  Transfer(const std::vector<LatencyRank> &ranks, int64_t partitions, uint64_t bytes, bool isCopied)
      : ranks(ranks), partitions(partitions) {
    const uint64_t count = bytes / static_cast<uint64_t>(partitions);
    done(occlPsendInit(ranks[0].comm, ranks[0].input, partitions, count, occlUint8, 1, 0, nullptr,
                       &send),
         "occlPsendInit");
    done(occlPrecvInit(ranks[1].comm, ranks[1].output, partitions, count, occlUint8, 0, 0, nullptr,
                       &receive),
         "occlPrecvInit");
    int least = 0, greatest = 0;
    check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
          "cudaStreamCreateWithPriority");
    occlPartDevice_t handle{};
    if (!isCopied)
      done(occlPdevice(send, &handle), "occlPdevice");
  }
  ~Transfer() {
    check(cudaSetDevice(ranks[1].device), "cudaSetDevice");
    check(cudaStreamSynchronize(ranks[1].stream), "the stream");
    check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
    check(cudaStreamSynchronize(stream), "the stream");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    done(occlPfree(send), "occlPfree");
    done(occlPfree(receive), "occlPfree");
  }
  Transfer(const Transfer &) = delete;
  Transfer &operator=(const Transfer &) = delete;

  /// An epoch whose start the host has waited for; rank 0's device is current afterwards.
  void begin() {
    check(cudaSetDevice(ranks[1].device), "cudaSetDevice");
    done(occlPstartOn(receive, ranks[1].stream), "occlPstartOn");
    done(occlPwaitOn(receive, ranks[1].stream), "occlPwaitOn");
    check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
    done(occlPstartOn(send, stream), "occlPstartOn");
    done(occlPprepareOn(send, stream), "occlPprepareOn");
    check(cudaStreamSynchronize(stream), "the stream");
  }
  void markAll() {
    for (int64_t p = 0; p < partitions; ++p)
      done(occlPreadyOn(send, p, p, stream), "occlPreadyOn");
    done(occlPwaitOn(send, stream), "occlPwaitOn");
  }
};

/// Between two points of a stream.
class Timer {
public:
  Timer() {
    for (cudaEvent_t &event : events)
      check(cudaEventCreate(&event), "cudaEventCreate");
  }
  void mark(size_t which, cudaStream_t stream) {
    check(cudaEventRecord(events[which], stream), "cudaEventRecord");
  }
  double microseconds() {
    float took = 0;
    check(cudaEventSynchronize(events[1]), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&took, events[0], events[1]), "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(took);
  }

private:
  cudaEvent_t events[2] = {};
};

double epochOf(const std::vector<LatencyRank> &ranks, int64_t partitions, uint64_t bytes,
               bool isCopied) {
  Transfer transfer(ranks, partitions, bytes, isCopied);
  check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
  std::vector<double> times;
  Timer timer;
  for (uint32_t i = 0; i < kTimes; ++i) {
    transfer.begin();
    timer.mark(0, transfer.stream);
    transfer.markAll();
    timer.mark(1, transfer.stream);
    times.push_back(timer.microseconds());
  }
  return median(times);
}

/// What a computation takes while epochs follow each other, and what they carry meanwhile.
struct Beside {
  double computation = 0, gigabytes = 0; // microseconds; a second
};

Beside computeBeside(const std::vector<LatencyRank> &ranks, float *sums, uint32_t blocks,
                     int64_t partitions, uint64_t bytes, bool isCopied) {
  Transfer transfer(ranks, partitions, std::max(bytes, kMiB), isCopied);
  check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::vector<double> times, rates;
  Timer timer;
  for (uint32_t i = 0; i < kTimes / 3; ++i) {
    timer.mark(0, stream);
    check(launchComputation(stream, sums, blocks, kSteps), "launching");
    timer.mark(1, stream);
    uint64_t epochs = 0;
    while (bytes != 0 && cudaStreamQuery(stream) == cudaErrorNotReady) {
      transfer.begin();
      transfer.markAll();
      ++epochs;
    }
    times.push_back(timer.microseconds());
    rates.push_back(static_cast<double>(epochs * bytes) / times.back() / 1e3);
    check(cudaStreamSynchronize(transfer.stream), "the stream");
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return {median(times), median(rates)};
}

void beside(const std::vector<LatencyRank> &ranks) {
  check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ranks[0].device),
        "cudaDeviceGetAttribute");
  const uint32_t blocks = kWaves * static_cast<uint32_t>(multiprocessors);
  float *sums = nullptr;
  check(cudaMalloc(&sums, uint64_t{blocks} * 384 * sizeof(float)), "cudaMalloc");
  std::printf("\nbeside a computation\n\n| bytes | partitions | kernel, us | kernel, GB/s | copy, "
              "us | copy, GB/s |\n"
              "|---:|---:|---:|---:|---:|---:|\n");
  for (const uint64_t each : {uint64_t{0}, 4 * kMiB, 16 * kMiB, kMost})
    for (const int64_t partitions : {int64_t{1}, int64_t{8}}) {
      const Beside byKernel = computeBeside(ranks, sums, blocks, partitions, each, false);
      const Beside byCopy = computeBeside(ranks, sums, blocks, partitions, each, true);
      std::printf("| %llu | %lld | %.0f | %.0f | %.0f | %.0f |\n",
                  static_cast<unsigned long long>(each), static_cast<long long>(partitions),
                  byKernel.computation, byKernel.gigabytes, byCopy.computation, byCopy.gigabytes);
    }
  check(cudaSetDevice(ranks[0].device), "cudaSetDevice");
  check(cudaFree(sums), "cudaFree");
}

int run() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 512 << 20;
  std::vector<LatencyRank> ranks = makeLatencyRanks(2, config, kMost);
  std::printf(
      "an epoch\n\n| bytes | partitions | kernel, us | copy, us |\n|---:|---:|---:|---:|\n");
  for (const uint64_t bytes : {kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB, kMost})
    for (const int64_t partitions : {int64_t{1}, int64_t{8}}) {
      const double byKernel = epochOf(ranks, partitions, bytes, false);
      const double byCopy = epochOf(ranks, partitions, bytes, true);
      std::printf("| %llu | %lld | %.1f | %.1f |\n", static_cast<unsigned long long>(bytes),
                  static_cast<long long>(partitions), byKernel, byCopy);
    }
  beside(ranks);
  destroyLatencyRanks(ranks);
  return 0;
}

} // namespace
} // namespace occl::bench

int main() { return occl::bench::run(); }
