// Collectives as work of streams: groups, graphs, several streams and communicators.
#include "nccl/gpu/device_ranks.h"
#include "nccl/testing/ranks.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace occl::nccl::testing {
namespace {

class Streams : public OnDevice {
protected:
  Rank &at(int rank) { return ranks[static_cast<size_t>(rank)]; }
  int total() const { return size() * (size() + 1) / 2; } // of the ranks + 1
  /// What call() puts into the rank's stream, captured.
  std::string capture(int rank, const std::function<ncclResult_t()> &call, cudaGraphExec_t &graph);
  /// A sum of ints from send to recv.
  std::string capture(int rank, size_t count, cudaGraphExec_t &graph);
  std::string captureGroup(int rank, cudaGraphExec_t &graph);
  std::string replay(int rank, cudaGraphExec_t graph, int times);
  /// A further communicator of the same ranks.
  std::vector<ncclComm_t> makeComms();
};

constexpr size_t kCount = 4099;

/// What a stream has before and after a call comes before and after it.
TEST_F(Streams, CallsAreInTheOrderOfTheirStream) {
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    constexpr size_t kBytes = kCount * sizeof(int);
    constexpr int kTimes = 20;
    std::string wrong;
    for (int i = 0; i < kTimes && wrong.empty(); ++i) {
      wrong = check("cudaMemsetAsync", cudaMemsetAsync(on.send, i, kBytes, on.stream));
      if (wrong.empty())
        wrong = check("ncclAllReduce", ncclAllReduce(on.send, on.recv, kCount, ncclInt32, ncclSum,
                                                     on.comm, on.stream));
      if (wrong.empty()) // behind all that is reduced
        wrong = check("cudaMemcpyAsync",
                      cudaMemcpyAsync(on.recv + static_cast<size_t>(i + 1) * kBytes, on.recv,
                                      kBytes, cudaMemcpyDeviceToDevice, on.stream));
    }
    if (!wrong.empty())
      return wrong;
    const std::vector<int> all = taken(rank, kCount * (kTimes + 1));
    for (size_t i = kCount; i < all.size(); ++i)
      if (all[i] != size() * 0x01010101 * static_cast<int>(i / kCount - 1))
        return "call " + std::to_string(i / kCount - 1) + " is wrong";
    return "";
  });
}

/// As programs with a thread for all devices do.
TEST_F(Streams, OneThreadHasAllRanksInGroups) {
  bounded([&] {
    for (int i = 0; i < 10; ++i) {
      for (int r = 0; r < size(); ++r)
        give(r, std::vector<int>(kCount, r + 1 + i));
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (int r = 0; r < size(); ++r) {
        const Rank &on = at(r);
        ASSERT_EQ(ncclAllReduce(on.send, on.recv, kCount, ncclInt32, ncclSum, on.comm, on.stream),
                  ncclSuccess);
        // Calls of a group are executed in order: this one reads what the one before has written.
        ASSERT_EQ(ncclReduceScatter(on.recv, on.send, kCount / ranks.size(), ncclInt32, ncclMin,
                                    on.comm, on.stream),
                  ncclSuccess);
        ASSERT_EQ(ncclBcast(on.send, 10, ncclInt32, size() - 1, on.comm, on.stream), ncclSuccess);
      }
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
      const int right = total() + size() * i;
      for (int r = 0; r < size(); ++r) {
        EXPECT_EQ(taken(r, kCount), std::vector<int>(kCount, right));
        std::vector<int> scattered(10);
        ASSERT_EQ(cudaMemcpy(scattered.data(), at(r).send, 40, cudaMemcpyDeviceToHost),
                  cudaSuccess);
        EXPECT_EQ(scattered, std::vector<int>(10, right));
      }
    }
  });
}

std::string Streams::capture(int rank, size_t count, cudaGraphExec_t &graph) {
  const Rank &on = at(rank);
  return capture(
      rank,
      [&] {
        return ncclAllReduce(on.send, on.recv, count, ncclInt32, ncclSum, on.comm, on.stream);
      },
      graph);
}

std::string Streams::capture(int rank, const std::function<ncclResult_t()> &call,
                             cudaGraphExec_t &graph) {
  const Rank &on = at(rank);
  cudaGraph_t captured = nullptr;
  std::string wrong = check("cudaStreamBeginCapture",
                            cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal));
  if (wrong.empty())
    wrong = check("the call", call());
  const std::string ended =
      check("cudaStreamEndCapture", cudaStreamEndCapture(on.stream, &captured));
  if (wrong.empty())
    wrong = ended;
  if (wrong.empty())
    wrong = check("cudaGraphInstantiate", cudaGraphInstantiate(&graph, captured, 0));
  if (captured)
    cudaGraphDestroy(captured);
  return wrong;
}

/// With other data each time, and a call of no graph between them.
std::string Streams::replay(int rank, cudaGraphExec_t graph, int times) {
  const Rank &on = at(rank);
  for (int i = 0; i < times; ++i) {
    give(rank, std::vector<int>(kCount, rank + 1 + 7 * i));
    std::string wrong = check("cudaGraphLaunch", cudaGraphLaunch(graph, on.stream));
    if (!wrong.empty())
      return wrong;
    if (taken(rank, kCount) != std::vector<int>(kCount, total() + size() * 7 * i))
      return "replay " + std::to_string(i) + " is wrong";
    wrong = check("ncclAllReduce", sum(rank, 77, on.comm, on.stream));
    if (!wrong.empty())
      return wrong;
    if (taken(rank, 77) != std::vector<int>(77, total()))
      return "the call after replay " + std::to_string(i) + " is wrong";
  }
  return "";
}

/// Graphs are made and destroyed while nothing waits, as that may take and free memory.
TEST_F(Streams, GraphsAreReplayedWithOtherData) {
  using Graphs = std::vector<cudaGraphExec_t>;
  Graphs first(ranks.size()), second(ranks.size());
  expectSums();
  const auto captureAll = [&](Graphs &graphs) {
    inThreads([&](int r) { return capture(r, kCount, graphs[static_cast<size_t>(r)]); });
  };
  const auto replayAll = [&](const Graphs &graphs, int times) {
    inThreads([&](int r) { return replay(r, graphs[static_cast<size_t>(r)], times); });
  };
  captureAll(first);
  replayAll(first, 6);
  captureAll(second);
  replayAll(second, 3);
  replayAll(first, 3);
  for (const Graphs &graphs : {first, second})
    for (cudaGraphExec_t graph : graphs)
      EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

/// Each replay of an all-to-all in place exchanges the parts again.
TEST_F(Streams, AllToAllsInPlaceAreReplayed) {
  std::vector<cudaGraphExec_t> graphs(ranks.size());
  expectSums();
  inThreads([&](int r) {
    const Rank &on = at(r);
    return capture(
        r, [&] { return ncclAlltoAll(on.recv, on.recv, kCount, ncclInt32, on.comm, on.stream); },
        graphs[static_cast<size_t>(r)]);
  });
  inThreads([&](int r) -> std::string {
    const Rank &on = at(r);
    const size_t all = kCount * ranks.size(), self = static_cast<size_t>(r);
    for (size_t times = 0; times < 6; ++times) {
      const auto value = [&](size_t rank, size_t i) {
        return static_cast<int>((rank + 10 * times) * 1'000'000 + i);
      };
      std::vector<int> given(all), right(all);
      for (size_t i = 0; i < all; ++i) {
        given[i] = value(self, i);
        right[i] = value(i / kCount, self * kCount + i % kCount);
      }
      give(r, given);
      std::string wrong =
          check("cudaMemcpyAsync", cudaMemcpyAsync(on.recv, on.send, all * sizeof(int),
                                                   cudaMemcpyDeviceToDevice, on.stream));
      if (wrong.empty())
        wrong = check("cudaGraphLaunch", cudaGraphLaunch(graphs[self], on.stream));
      if (!wrong.empty())
        return wrong;
      if (taken(r, all) != right)
        return "replay " + std::to_string(times) + " is wrong";
    }
    return "";
  });
  for (cudaGraphExec_t graph : graphs)
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

/// In the mode in which another thread's careless call would spoil the capture.
TEST_F(Streams, OneThreadCapturesAllRanks) {
  bounded([&] {
    std::vector<cudaGraphExec_t> graphs(ranks.size());
    for (const Rank &on : ranks)
      ASSERT_EQ(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (const Rank &on : ranks)
      for (int i = 0; i < 3; ++i) // of sums of sums
        ASSERT_EQ(ncclAllReduce(i == 0 ? on.send : on.recv, on.recv, kCount, ncclInt32, ncclSum,
                                on.comm, on.stream),
                  ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    std::vector<cudaGraph_t> captured(ranks.size());
    for (int r = 0; r < size(); ++r)
      ASSERT_EQ(cudaStreamEndCapture(at(r).stream, &captured[static_cast<size_t>(r)]), cudaSuccess);
    for (int r = 0; r < size(); ++r) { // instantiating is not allowed while another one captures
      const auto i = static_cast<size_t>(r);
      ASSERT_EQ(cudaGraphInstantiate(&graphs[i], captured[i], 0), cudaSuccess);
      cudaGraphDestroy(captured[i]);
    }
    for (int i = 1; i < 5; ++i) {
      for (int r = 0; r < size(); ++r)
        give(r, std::vector<int>(kCount, i * (r + 1)));
      for (int r = 0; r < size(); ++r)
        ASSERT_EQ(cudaGraphLaunch(graphs[static_cast<size_t>(r)], at(r).stream), cudaSuccess);
      for (int r = 0; r < size(); ++r)
        EXPECT_EQ(taken(r, kCount), std::vector<int>(kCount, i * total() * size() * size()));
    }
    for (cudaGraphExec_t graph : graphs)
      EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  });
}

std::vector<ncclComm_t> Streams::makeComms() {
  std::vector<ncclComm_t> comms(ranks.size());
  const std::vector<int> devices(ranks.size(), 0);
  EXPECT_EQ(ncclCommInitAll(comms.data(), size(), devices.data()), ncclSuccess) << lastError();
  return comms;
}

/// What others' threads and the library's own do of CUDA while a thread captures in the mode in
/// which a call of any thread may spoil it: communicators come together and are divided.
TEST_F(Streams, CommunicatorsConnectWhileAThreadCaptures) {
  expectSums();
  bounded([&] {
    std::vector<ncclComm_t> comms, parts;
    for (const Rank &on : ranks)
      ASSERT_EQ(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    std::thread([&] {
      comms = makeComms();
      parts.resize(comms.size());
      for (size_t r = 0; r < comms.size(); ++r)
        EXPECT_EQ(ncclCommSplit(comms[r], 0, 0, &parts[r], nullptr), ncclSuccess) << lastError();
      int count = 0;
      for (ncclComm_t part : parts) // waits until they have come together
        EXPECT_EQ(ncclCommCount(part, &count), ncclSuccess) << lastError();
      EXPECT_EQ(count, size());
    }).join();
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (const Rank &on : ranks)
      ASSERT_EQ(ncclAllReduce(on.send, on.recv, kCount, ncclInt32, ncclSum, on.comm, on.stream),
                ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    std::vector<cudaGraph_t> captured(ranks.size());
    for (int r = 0; r < size(); ++r)
      ASSERT_EQ(cudaStreamEndCapture(at(r).stream, &captured[static_cast<size_t>(r)]), cudaSuccess);
    for (const auto &all : {parts, comms}) // an end would spoil a capture
      for (ncclComm_t comm : all)
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
    std::vector<cudaGraphExec_t> graphs(ranks.size());
    for (size_t r = 0; r < ranks.size(); ++r) {
      ASSERT_EQ(cudaGraphInstantiate(&graphs[r], captured[r], 0), cudaSuccess);
      cudaGraphDestroy(captured[r]);
    }
    for (int r = 0; r < size(); ++r)
      give(r, std::vector<int>(kCount, r + 1));
    for (int r = 0; r < size(); ++r)
      ASSERT_EQ(cudaGraphLaunch(graphs[static_cast<size_t>(r)], at(r).stream), cudaSuccess);
    for (int r = 0; r < size(); ++r)
      EXPECT_EQ(taken(r, kCount), std::vector<int>(kCount, total()));
    for (cudaGraphExec_t graph : graphs)
      EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  });
}

/// Ranks that differ in which of two communicators they turn to first.
TEST_F(Streams, CommunicatorsInOppositeOrdersEnd) {
  const std::vector<ncclComm_t> others = makeComms();
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    const ncclComm_t comms[] = {on.comm, others[static_cast<size_t>(rank)]};
    const cudaStream_t streams[] = {on.stream, on.other};
    give(rank, std::vector<int>(2 * kCount, rank + 1));
    std::string wrong;
    for (int i = 0; i < 50 && wrong.empty(); ++i) {
      for (int which : {(rank + i) % 2, (rank + i + 1) % 2})
        if (wrong.empty()) {
          const size_t offset = static_cast<size_t>(which) * kCount * sizeof(int);
          wrong = check("ncclAllReduce",
                        ncclAllReduce(on.send + offset, on.recv + offset, kCount, ncclInt32,
                                      ncclSum, comms[which], streams[which]));
        }
      if (wrong.empty() && i % 10 == 9)
        wrong = synchronize(on.other);
      if (wrong.empty() && i % 10 == 9)
        wrong = synchronize(on.stream);
    }
    if (wrong.empty() && taken(rank, 2 * kCount) != std::vector<int>(2 * kCount, total()))
      wrong = "a sum is wrong";
    return wrong;
  });
  for (ncclComm_t comm : others)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
}

/// As servers do: graphs for some counts, and any other count without one, none of which is waited
/// for.
TEST_F(Streams, AfterACaptureAnyNumberOfCounts) {
  constexpr size_t kCounts = 1100; // more than are remembered
  std::vector<cudaGraphExec_t> graphs(ranks.size());
  expectSums();
  inThreads([&](int r) { return capture(r, kCount, graphs[static_cast<size_t>(r)]); });
  inThreads([&](int r) -> std::string {
    const Rank &on = at(r);
    give(r, std::vector<int>(kCount, r + 1));
    std::string wrong;
    for (size_t count = 1; count <= kCounts && wrong.empty(); ++count)
      wrong = check("ncclAllReduce", ncclAllReduce(on.send, on.recv, count, ncclInt32, ncclSum,
                                                   on.comm, count % 2 ? on.stream : on.other));
    if (wrong.empty())
      wrong = synchronize(on.other);
    if (wrong.empty() && taken(r, kCounts) != std::vector<int>(kCounts, total()))
      wrong = "the last sum is wrong";
    return wrong;
  });
  inThreads([&](int r) { return replay(r, graphs[static_cast<size_t>(r)], 3); });
  for (cudaGraphExec_t graph : graphs)
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

/// A stream of a group has something late in it, and the other one waits for that as well.
TEST_F(Streams, OfAGroupWaitForEachOther) {
  expectSums(); // what is made at the first call may wait for the device
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    std::atomic<bool> isLate = true;
    cudaEvent_t end = nullptr;
    const size_t half = kCount * sizeof(int);
    give(rank, std::vector<int>(2 * kCount, rank + 1));
    std::string wrong = check("cudaEventCreate", cudaEventCreate(&end));
    const auto wait = [](void *late) {
      while (*static_cast<std::atomic<bool> *>(late))
        std::this_thread::yield();
    };
    if (wrong.empty())
      wrong = check("cudaLaunchHostFunc", cudaLaunchHostFunc(on.other, wait, &isLate));
    if (wrong.empty())
      wrong = check("ncclGroupStart", ncclGroupStart());
    for (const bool isFirst : {true, false})
      if (wrong.empty())
        wrong =
            check("ncclAllReduce", ncclAllReduce(on.send + (isFirst ? 0 : half),
                                                 on.recv + (isFirst ? 0 : half), kCount, ncclInt32,
                                                 ncclSum, on.comm, isFirst ? on.stream : on.other));
    if (wrong.empty())
      wrong = check("ncclGroupEnd", ncclGroupEnd());
    if (wrong.empty())
      wrong = check("cudaEventRecord", cudaEventRecord(end, on.stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (wrong.empty() && cudaEventQuery(end) != cudaErrorNotReady)
      wrong = "the first stream does not wait for the second one";
    isLate = false;
    const std::string ended = synchronize(on.other);
    if (wrong.empty())
      wrong = ended;
    if (wrong.empty() && taken(rank, 2 * kCount) != std::vector<int>(2 * kCount, total()))
      wrong = "a sum is wrong";
    cudaEventDestroy(end);
    return wrong;
  });
}

/// Its streams are branches of the graph.
TEST_F(Streams, AGroupInTwoStreamsIsReplayed) {
  std::vector<cudaGraphExec_t> graphs(ranks.size());
  expectSums();
  inThreads([&](int r) { return captureGroup(r, graphs[static_cast<size_t>(r)]); });
  inThreads([&](int r) -> std::string {
    for (int i = 0; i < 4; ++i) {
      give(r, std::vector<int>(2 * kCount, r + 1 + 7 * i));
      std::string wrong =
          check("cudaGraphLaunch", cudaGraphLaunch(graphs[static_cast<size_t>(r)], at(r).stream));
      if (!wrong.empty())
        return wrong;
      if (taken(r, 2 * kCount) != std::vector<int>(2 * kCount, total() + size() * 7 * i))
        return "replay " + std::to_string(i) + " is wrong";
    }
    return "";
  });
  for (cudaGraphExec_t graph : graphs)
    EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

/// A sum in the rank's stream, and another one of the same group in its other stream.
std::string Streams::captureGroup(int rank, cudaGraphExec_t &graph) {
  const Rank &on = at(rank);
  cudaEvent_t fork = nullptr, join = nullptr;
  cudaEventCreate(&fork);
  cudaEventCreate(&join);
  const size_t half = kCount * sizeof(int);
  std::string wrong = capture(
      rank,
      [&] {
        cudaEventRecord(fork, on.stream);
        cudaStreamWaitEvent(on.other, fork, 0);
        ncclGroupStart();
        ncclAllReduce(on.send, on.recv, kCount, ncclInt32, ncclSum, on.comm, on.stream);
        ncclAllReduce(on.send + half, on.recv + half, kCount, ncclInt32, ncclSum, on.comm,
                      on.other);
        const ncclResult_t result = ncclGroupEnd();
        cudaEventRecord(join, on.other);
        cudaStreamWaitEvent(on.stream, join, 0);
        return result;
      },
      graph);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  return wrong;
}

/// The calls of a communicator are one after the other, over all its streams.
TEST_F(Streams, ACommunicatorInTwoStreams) {
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    give(rank, std::vector<int>(kCount, rank + 1));
    std::string wrong;
    // Each reads what the one before, in the other stream, has written.
    for (int i = 0; i < 21 && wrong.empty(); ++i)
      wrong =
          check("ncclAllReduce", ncclAllReduce(i % 2 ? on.recv : on.send, i % 2 ? on.send : on.recv,
                                               kCount, ncclInt32, i == 0 ? ncclSum : ncclMax,
                                               on.comm, i % 2 ? on.other : on.stream));
    if (wrong.empty())
      wrong = synchronize(on.other);
    if (wrong.empty() && taken(rank, kCount) != std::vector<int>(kCount, total()))
      wrong = "the last result is wrong";
    return wrong;
  });
}

} // namespace
} // namespace occl::nccl::testing
