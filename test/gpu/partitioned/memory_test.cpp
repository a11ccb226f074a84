// What may be seen of partitions that have arrived, by each kind of access that is allowed
// (docs/decisions/gpu/partitioned.md), over and over: bulk stores of many threads before a mark,
// bulk loads behind a wait, the read-only cache behind the end of an epoch, copy engines. And which
// kernels may wait at all. Ranks are threads. Skipped where there is no device.
#include "support/testing/seed.h"
#include "test/gpu/harness/user_kernels.h"
#include "test/gpu/partitioned/collective_request.h"
#include "test/gpu/partitioned/memory_users.h"
#include "test/gpu/partitioned/ranks_in_rings.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class PartMemory : public RanksInRings {
protected:
  int loadKernels() override {
    const int loaded = RanksInRings::loadKernels();
    return loaded == cudaSuccess ? loadMemoryUsers() : loaded;
  }
};

/// 100,000 partitions, each made by 128 bulk stores of as many threads and read by a bulk load as
/// soon as it has arrived; after the epoch through the read-only cache, from where the last
/// epoch's data are to be gone.
TEST_F(PartMemory, BulkCopiesAndTheReadOnlyCache) {
  constexpr uint64_t kPartitions = 16, kEpochs = 100'000 / kPartitions, kAtOnce = 50;
  const uint64_t seed = printedSeed();
  onRing({kPartitions, kPartitions, kPartitions * kBulkBytes},
         [&](uint32_t rank, Ring &ring) -> std::string {
           const cudaStream_t stream = streamOf(rank);
           for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
             const uint64_t own = ring.ownKey(seed + epoch), theirs = ring.theirKey(seed + epoch);
             ring.start(stream);
             ring.expect(launchBulkExchange(stream, ring.handle(ring.send), ring.out(), own,
                                            ring.handle(ring.receive), ring.in(), theirs,
                                            10 * kSecond, ring.different),
                         "launching");
             ring.expect(occlPwaitOn(ring.send, stream), "occlPwaitOn");
             ring.expect(occlPwaitOn(ring.receive, stream), "occlPwaitOn");
             ring.expect(launchCheckReadOnly(stream, ring.in(), theirs, ring.different),
                         "launching");
             if (epoch % kAtOnce != 0 && epoch != kEpochs)
               continue;
             if (std::string wrong = ring.finish(stream); !wrong.empty())
               return wrong + " up to epoch " + std::to_string(epoch);
           }
           ring.free();
           return "";
         });
  std::printf("%llu partitions of %llu bytes by bulk copies on each of %u ranks\n",
              static_cast<unsigned long long>(kPartitions * kEpochs),
              static_cast<unsigned long long>(kBulkBytes), n());
}

/// Partitions that a copy engine brings, read by a kernel that waits for each beside it.
TEST_F(PartMemory, CopyEnginesBesideAKernelThatWaits) {
  constexpr uint64_t kPartitions = 4, kEpochs = 1000;
  const uint64_t seed = printedSeed();
  onRing({kPartitions, kPartitions, kPartitions << 20},
         [&](uint32_t rank, Ring &ring) -> std::string {
           const cudaStream_t stream = streamOf(rank);
           cudaStream_t other = nullptr;
           cudaEvent_t begun = nullptr, used = nullptr;
           cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
           cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
           cudaEventCreateWithFlags(&used, cudaEventDisableTiming);
           for (uint64_t epoch = 1; epoch <= kEpochs && ring.wrong().empty(); ++epoch) {
             ring.start(stream);
             cudaEventRecord(begun, stream);
             ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
             ring.expect(launchFill(stream, ring.out(), ring.ownKey(seed + epoch)), "filling");
             // From here on the host knows that the receiver has started, so marks are copies.
             ring.expect(cudaStreamSynchronize(stream), "waiting");
             cudaStreamWaitEvent(other, begun, 0);
             ring.expect(launchConsume(other, ring.handle(ring.receive), ring.in(),
                                       ring.theirKey(seed + epoch), 10 * kSecond, ring.different),
                         "launching");
             cudaEventRecord(used, other);
             for (int64_t p = 0; p < static_cast<int64_t>(kPartitions); ++p)
               ring.expect(occlPreadyOn(ring.send, p, p, stream), "occlPreadyOn");
             ring.waitAndCheck(stream, seed + epoch);
             cudaStreamWaitEvent(stream, used, 0);
           }
           const std::string wrong = ring.finish(stream);
           cudaStreamDestroy(other);
           cudaEventDestroy(begun);
           cudaEventDestroy(used);
           ring.free();
           return wrong;
         });
}

/// N of "of which N are on the device".
uint32_t mostOf(const std::string &why) {
  const std::string before = "of which ";
  const size_t at = why.find(before);
  return at == std::string::npos
             ? 0
             : static_cast<uint32_t>(std::stoul(why.substr(at + before.size())));
}

TEST_F(PartMemory, GridsThatWaitAreChecked) {
  cudaSetDevice(0);
  Ring ring(comms[0], 0, n(), {4, 4, 4096});
  const uint32_t most = mostOf(checkWaiting(ring.receive, 1 << 20));
  std::printf("%u thread blocks may wait for a transfer\n", most);
  ASSERT_GT(most, 0u) << checkWaiting(ring.receive, 1 << 20);
  EXPECT_EQ(checkWaiting(ring.receive, most), "");
  EXPECT_NE(checkWaiting(ring.receive, most + 1), "");
  for (uint64_t rounds : {1, 4}) {
    std::vector<std::unique_ptr<CollectiveRequest>> all;
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      all.push_back(std::make_unique<CollectiveRequest>(
          comms[rank], rank, n(), CollectiveShape{occlKindAllReduce, 4096, 4, 4, rounds}));
    }
    cudaSetDevice(0);
    const std::string why = checkWaiting(all[0]->part, 1 << 20);
    if (rounds == 1) {
      EXPECT_NE(why.find("has one round"), std::string::npos) << why;
      continue;
    }
    std::printf("%u thread blocks may wait for a collective\n", mostOf(why));
    ASSERT_GT(mostOf(why), 0u) << why;
    EXPECT_LT(mostOf(why), most);
    EXPECT_EQ(checkWaiting(all[0]->part, mostOf(why)), "");
  }
  ring.free();
  EXPECT_EQ(ring.wrong(), "");
}

} // namespace
} // namespace occl::gpu_test
