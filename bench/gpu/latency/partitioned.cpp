// partitioned [<rounds>]: one way of a partition from kernel to kernel, by occl_device.cuh and by
// hand; what making a request takes; an epoch of a stream; an all-reduce of floats whose partitions
// are marked all at once, beside the same by occlStart and occlStreamWait (rounds: this alone, in
// so many). Two ranks, threads, on as many devices as there are. Medians of 21, microseconds; CSV.
#include "bench/gpu/latency/latency_ranks.h"
#include "bench/gpu/latency/part_kernels.h"

#include "runtime/api/occl_partitioned_device.h"
#include "runtime/api/occl_transfer.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kTimes = 21, kThreads = 512;
constexpr uint64_t kBuffer = 64 << 20, kWords = 4096;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void check(int error, const char *what) { require(error == cudaSuccess, what); }

/// body(rank) on both, on threads of their own; with a barrier that they share.
void onBoth(std::vector<LatencyRank> &ranks,
            const std::function<void(size_t, std::barrier<> &)> &body) {
  std::barrier<> met(2);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      check(cudaSetDevice(ranks[r].device), "cudaSetDevice");
      body(r, met);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// A request in each direction.
struct Both {
  occlPart_t send = nullptr, receive = nullptr;
  occlPartDevice_t sends{}, receives{};

  Both(const LatencyRank &rank, size_t r, uint64_t partitions, uint64_t bytes) {
    const auto number = static_cast<int64_t>(partitions), other = static_cast<int64_t>(1 - r);
    require(occlPsendInit(rank.comm, rank.input, number, bytes, occlUint8, other, 0, nullptr,
                          &send) == occlSuccess,
            "occlPsendInit");
    require(occlPrecvInit(rank.comm, rank.output, number, bytes, occlUint8, other, 0, nullptr,
                          &receive) == occlSuccess,
            "occlPrecvInit");
    require(occlPdevice(send, &sends) == occlSuccess, "occlPdevice");
    require(occlPdevice(receive, &receives) == occlSuccess, "occlPdevice");
  }
  void start(cudaStream_t stream) {
    require(occlPstartOn(receive, stream) == occlSuccess, "occlPstartOn");
    require(occlPstartOn(send, stream) == occlSuccess, "occlPstartOn");
  }
  void wait(cudaStream_t stream) {
    require(occlPwaitOn(receive, stream) == occlSuccess, "occlPwaitOn");
    require(occlPwaitOn(send, stream) == occlSuccess, "occlPwaitOn");
  }
  void free() {
    require(occlPfree(send) == occlSuccess, "occlPfree");
    require(occlPfree(receive) == occlSuccess, "occlPfree");
  }
};

/// One way of a partition, by the library and by hand.
void pingPong(std::vector<LatencyRank> &ranks, uint64_t bytes, uint64_t *took[2],
              uint64_t *words[2]) {
  const auto partitions = static_cast<uint32_t>(std::clamp<uint64_t>(kBuffer / 2 / bytes, 16, 500));
  std::vector<double> ours, byHand;
  onBoth(ranks, [&](size_t r, std::barrier<> &met) {
    const LatencyRank &rank = ranks[r];
    Both both(rank, r, partitions, bytes);
    const auto measure = [&](auto launch) {
      uint64_t time = 0;
      met.arrive_and_wait();
      launch();
      check(cudaStreamSynchronize(rank.stream), "the stream");
      check(cudaMemcpy(&time, took[r], sizeof time, cudaMemcpyDeviceToHost), "copying");
      met.arrive_and_wait();
      return static_cast<double>(time) / (2e3 * partitions);
    };
    for (uint32_t i = 0; i < kTimes; ++i) {
      const double mine = measure([&] {
        both.start(rank.stream);
        require(occlPprepareOn(both.send, rank.stream) == occlSuccess, "occlPprepareOn");
        check(launchPartPingPong(rank.stream, both.sends, both.receives, partitions, kThreads,
                                 r == 0, took[r]),
              "launching");
        both.wait(rank.stream);
      });
      check(cudaMemsetAsync(words[r], 0, sizeof(uint64_t), rank.stream), "clearing");
      check(cudaStreamSynchronize(rank.stream), "the stream");
      const double floor = measure([&] {
        check(launchPingPongByHand(rank.stream,
                                   {static_cast<char *>(rank.input),
                                    static_cast<char *>(ranks[1 - r].output), bytes, words[1 - r],
                                    words[r]},
                                   partitions, kThreads, r == 0, took[r]),
              "launching");
      });
      if (r == 0) {
        ours.push_back(mine);
        byHand.push_back(floor);
      }
    }
    both.free();
  });
  std::printf("| one way | %llu | %.2f | by hand | %.2f |\n",
              static_cast<unsigned long long>(bytes), median(ours), median(byHand));
}

void init(std::vector<LatencyRank> &ranks) {
  std::vector<double> made;
  onBoth(ranks, [&](size_t r, std::barrier<> &met) {
    for (uint32_t i = 0; i < kTimes; ++i) {
      met.arrive_and_wait();
      const auto begin = Clock::now();
      Both both(ranks[r], r, 64, 4096);
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (r == 0)
        made.push_back(took.count() / 2);
      met.arrive_and_wait();
      both.free();
    }
  });
  std::printf("| init | 262144 | %.1f | | |\n", median(made));
}

/// Microseconds for each of so many epochs in the rank's stream, which both ranks begin together.
double timeOf(const LatencyRank &rank, std::barrier<> &met, uint32_t epochs,
              const std::function<void()> &one) {
  met.arrive_and_wait();
  const auto begin = Clock::now();
  for (uint32_t epoch = 0; epoch < epochs; ++epoch)
    one();
  check(cudaStreamSynchronize(rank.stream), "the stream");
  const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
  return took.count() / epochs;
}

/// Start, one mark of all, wait, of both directions.
void epochs(std::vector<LatencyRank> &ranks, uint64_t bytes) {
  constexpr uint32_t kEpochs = 50;
  std::vector<double> ours, sent;
  onBoth(ranks, [&](size_t r, std::barrier<> &met) {
    const LatencyRank &rank = ranks[r];
    Both both(rank, r, 1, bytes);
    const auto measure = [&](auto one) { return timeOf(rank, met, kEpochs, one); };
    for (uint32_t i = 0; i < kTimes; ++i) {
      const double mine = measure([&] {
        both.start(rank.stream);
        require(occlPreadyOn(both.send, 0, 0, rank.stream) == occlSuccess, "occlPreadyOn");
        both.wait(rank.stream);
      });
      const double theirs = measure([&] {
        require(occlGroupStart() == occlSuccess, "occlGroupStart");
        require(occlSend(rank.input, bytes, occlUint8, static_cast<uint32_t>(1 - r), rank.comm,
                         rank.stream) == occlSuccess,
                "occlSend");
        require(occlRecv(rank.output, bytes, occlUint8, static_cast<uint32_t>(1 - r), rank.comm,
                         rank.stream) == occlSuccess,
                "occlRecv");
        require(occlGroupEnd() == occlSuccess, "occlGroupEnd");
      });
      if (r == 0) {
        ours.push_back(mine);
        sent.push_back(theirs);
      }
    }
    both.free();
  });
  std::printf("| epoch | %llu | %.1f | occlSend and occlRecv | %.1f |\n",
              static_cast<unsigned long long>(bytes), median(ours), median(sent));
}

/// Of one rank: 16 partitions, marked by one kernel of the stream.
void allReduce(std::vector<LatencyRank> &ranks, uint64_t bytes, uint64_t rounds) {
  constexpr int64_t kPartitions = 16;
  constexpr uint32_t kEpochs = 10;
  std::vector<double> ours, started;
  onBoth(ranks, [&](size_t r, std::barrier<> &met) {
    const LatencyRank &rank = ranks[r];
    CUstream_st *stream = rank.stream;
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = rank.input;
    call.recvBuffer = rank.output;
    call.count = bytes / sizeof(float);
    occlPart_t part = nullptr;
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.rounds = rounds;
    require(occlPcollInit(rank.comm, &call, kPartitions, kPartitions, &config, &part) ==
                occlSuccess,
            "occlPcollInit");
    call.id = bytes;
    call.after = &stream;
    const auto measure = [&](const std::function<void()> &one) {
      one(); // makes what is made once
      check(cudaStreamSynchronize(stream), "the stream");
      return timeOf(rank, met, kEpochs, one);
    };
    for (uint32_t i = 0; i < kTimes; ++i) {
      const double mine = measure([&] {
        require(occlPstartOn(part, stream) == occlSuccess, "occlPstartOn");
        require(occlPreadyOn(part, 0, kPartitions - 1, stream) == occlSuccess, "occlPreadyOn");
        require(occlPwaitOn(part, stream) == occlSuccess, "occlPwaitOn");
      });
      const double theirs = measure([&] {
        occlRequest_t request = 0;
        require(occlStart(rank.comm, &call, nullptr, nullptr, &request) == occlSuccess,
                "occlStart");
        require(occlStreamWait(rank.comm, request, stream) == occlSuccess, "occlStreamWait");
      });
      if (r == 0) {
        ours.push_back(mine);
        started.push_back(theirs);
      }
    }
    require(occlPfree(part) == occlSuccess, "occlPfree");
  });
  std::printf("| all-reduce | %llu | %.1f | occlStart | %.1f |\n",
              static_cast<unsigned long long>(bytes), median(ours), median(started));
}

int run(uint64_t rounds) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 512 << 20;
  std::vector<LatencyRank> ranks = makeLatencyRanks(2, config, kBuffer);
  uint64_t *took[2], *words[2];
  for (size_t r = 0; r < 2; ++r) {
    check(cudaSetDevice(ranks[r].device), "cudaSetDevice");
    void *memory = nullptr;
    require(occlMemAlloc(ranks[r].comm, kWords, &memory) == occlSuccess, "occlMemAlloc");
    words[r] = static_cast<uint64_t *>(memory);
    check(cudaMalloc(&took[r], sizeof(uint64_t)), "cudaMalloc");
    check(loadPingPongs(), "loading kernels");
  }
  std::printf("| what | bytes | us | beside it | its us |\n|---|---:|---:|---|---:|\n");
  const auto allReduces = [&] {
    for (const uint64_t bytes : {1024ull, 65536ull, 1048576ull, 16777216ull, 67108864ull})
      allReduce(ranks, bytes, rounds);
    destroyLatencyRanks(ranks);
    return 0;
  };
  if (rounds != 0)
    return allReduces();
  for (const uint64_t bytes : {8ull, 4096ull, 65536ull, 262144ull})
    pingPong(ranks, bytes, took, words);
  init(ranks);
  for (const uint64_t bytes : {1024ull, 65536ull, 1048576ull, 16777216ull, 67108864ull})
    epochs(ranks, bytes);
  return allReduces();
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  return occl::bench::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0);
}
