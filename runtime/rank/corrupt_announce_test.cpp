// What a peer has announced may be damaged: then binding it is an error that says so.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/invocation/open_invocation.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kArenaBytes = 1 << 20;

/// Rank 0 of two, with an invocation for which rank 1 has announced what a test says.
class CorruptAnnounce : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = testing::makeThreadFabrics(kRanks, kArenaBytes);
    ASSERT_TRUE(made.ok()) << made.status().message();
    fabrics = std::move(made->fabrics);
    CollectiveSpec spec;
    spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(kRanks));
    spec.count = 100;
    collective = std::move(*makeCollective(std::move(spec), {.headsDistance = kArenaBytes}));
    id.counters.ensure(collective->binding->program().numBlocks);
    workspace.resize(workspaceBytes(*collective, kRanks));
    invocation.collective = collective.get();
    invocation.id = &id;
    invocation.name = "grads";
    invocation.workspace = workspace.data();
    prepare(invocation, *fabrics[0], buffer, buffer);
  }

  /// What binding the record of rank 1 says.
  StatusOr<bool> bind(uint64_t arenaOffset) {
    if (!theirs)
      theirs = transport::AnnounceOwner(fabrics[1]->own().announceTable()).take(7);
    theirs->publish(0, arenaOffset, collective->traits);
    return bindPeers(invocation, *fabrics[0], 1);
  }
  uint64_t bytes() const { return collective->binding->arenaBytes(1); }

  std::vector<std::unique_ptr<Fabric>> fabrics;
  std::unique_ptr<Collective> collective;
  IdState id{7, kRanks};
  transport::AnnounceCell *theirs = nullptr; // rank 1's
  OpenInvocation invocation;
  std::vector<std::byte> workspace;
  float buffer[200] = {};
};

TEST_F(CorruptAnnounce, ARecordThatIsRightIsBound) {
  uint64_t last = (kArenaBytes - bytes()) / 128 * 128;
  auto bound = bind(last);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_TRUE(*bound);
}

TEST_F(CorruptAnnounce, MemoryThatIsNotInTheArenaIsAnError) {
  constexpr uint64_t kLargest = (uint64_t{1} << 40) - 128;
  for (uint64_t offset : {kArenaBytes, kArenaBytes - 128, kLargest, uint64_t{64}, uint64_t{1}}) {
    auto bound = bind(offset);
    ASSERT_FALSE(bound.ok()) << offset;
    EXPECT_EQ(bound.status().code(), StatusCode::InternalError);
    EXPECT_EQ(
        bound.status().message(),
        "collective 'grads' (id 7), invocation 0: rank 1 announced " + std::to_string(bytes()) +
            " bytes at offset " + std::to_string(offset) +
            " of its arena, which has 1048576; something has overwritten its announce record");
  }
}

TEST_F(CorruptAnnounce, OtherTraitsAreAMismatchThatSaysBoth) {
  collective->traits.dataType = 99;
  transport::CollectiveTraits others = collective->traits;
  collective->traits.dataType = 5;
  others.count = 3;
  transport::AnnounceOwner(fabrics[1]->own().announceTable()).take(7)->publish(0, 0, others);
  auto bound = bindPeers(invocation, *fabrics[0], 1);
  EXPECT_EQ(bound.status().code(), StatusCode::Mismatch);
  EXPECT_NE(bound.status().message().find("rank 1 has allreduce, count 3, type unknown"),
            std::string::npos)
      << bound.status().message();
}

/// A ring that is not in the arena is none, one that is elsewhere is put right by the record.
TEST_F(CorruptAnnounce, ARingThatIsDamagedIsNotUsed) {
  plan::Plan plan = plan::testing::oneShotAllReduce(kRanks);
  plan.protocol = plan::Protocol::LL128;
  CollectiveSpec spec;
  spec.plan = std::make_shared<plan::Plan>(std::move(plan));
  spec.count = 10;
  collective = std::move(*makeCollective(std::move(spec), {.headsDistance = kArenaBytes}));
  ASSERT_TRUE(collective->mayUseRing);
  workspace.resize(workspaceBytes(*collective, kRanks));
  invocation.collective = collective.get();
  invocation.workspace = workspace.data();
  theirs = transport::AnnounceOwner(fabrics[1]->own().announceTable()).take(7);
  char *arena = reinterpret_cast<char *>(fabrics[0]->of(1).arena());
  const auto boundAt = [&](uint64_t word) {
    theirs->ring.store(word);
    for (auto &known : id.peerRings)
      known.store(0);
    prepare(invocation, *fabrics[0], buffer, buffer + 100);
    return invocation.view.places[interpreter::arenaPlace(1)];
  };
  using transport::PrepostedRing;
  const uint64_t block = (bytes() + 127) / 128 * 128;
  ASSERT_GT(bytes(), 128u);
  const PrepostedRing last{kArenaBytes - 8 * block, block, block};
  EXPECT_EQ(boundAt(last.packed()), arena + last.arenaOffset);
  for (const PrepostedRing &wrong :
       {PrepostedRing{256, 0, 0}, PrepostedRing{64, block, block}, PrepostedRing{1, block, block},
        PrepostedRing{kArenaBytes, block, block},
        PrepostedRing{last.arenaOffset + 128, block, block}, PrepostedRing{0, block, 8192 * block},
        PrepostedRing{0, 128, 128}}) {
    EXPECT_EQ(boundAt(wrong.packed()), nullptr) << wrong.arenaOffset << " " << wrong.largest;
    EXPECT_EQ(id.peerRings[1].load(), wrong.largest == 128 ? wrong.packed() : 0);
  }
  EXPECT_EQ(boundAt(~uint64_t{0}), nullptr);
  const PrepostedRing sizes{1024, 128, 4096};
  EXPECT_EQ(boundAt(sizes.packed()), arena + sizes.firstOffset(bytes()));
  theirs->publish(0, 8192, collective->traits);
  auto confirmed = confirmPeer(invocation, *fabrics[0], 1);
  ASSERT_TRUE(confirmed.ok() && *confirmed);
  EXPECT_EQ(invocation.view.places[interpreter::arenaPlace(1)], arena + 8192);
  EXPECT_EQ(id.ringsForgotten.load(), 1u);
}

/// Rank 0 of two processes: what binding says if rank 1 announces these places of its buffers in
/// its heap of 64 KiB, for a plan that accesses them directly.
class CorruptBuffers : public ::testing::Test {
protected:
  static constexpr uint64_t kHeapBytes = 64 << 10;

  static StatusOr<std::unique_ptr<Fabric>> join(const std::string &name, uint32_t rank) {
    auto bell = bootstrap::SharedBell::makeShared();
    if (!bell.ok())
      return bell.status();
    bootstrap::ProcessGroupOptions options;
    options.numRanks = kRanks;
    options.rank = rank;
    options.name = name;
    options.segmentBytes = transport::Segment::bytesFor(kArenaBytes, kHeapBytes);
    options.bell = *bell;
    auto group = bootstrap::formProcessGroup(options);
    if (!group.ok())
      return group.status();
    return makeFabric(std::move(*group), 1, Deadline(std::chrono::seconds(30)), kHeapBytes);
  }

  static std::unique_ptr<Collective> makeDirect(uint64_t count) {
    CollectiveSpec spec;
    spec.plan = std::make_shared<plan::Plan>(plan::testing::directAllReduce(kRanks));
    spec.count = count;
    auto made = makeCollective(std::move(spec), {0, kArenaBytes, true});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }

  /// Rank 1, a process of its own: announces that, and stays until it is killed.
  static pid_t startPeer(const std::string &name, const transport::BufferAddresses &buffers,
                         const transport::CollectiveTraits &traits) {
    pid_t child = fork();
    if (child != 0)
      return child;
    auto fabric = join(name, 1);
    if (!fabric.ok())
      _exit(1);
    transport::AnnounceCell *cell =
        transport::AnnounceOwner((*fabric)->own().announceTable()).take(7);
    cell->publish(0, 0, traits, buffers);
    cell->begun.store(1);
    (void)(*fabric)->meet(Deadline(std::chrono::seconds(30)));
    pause();
    _exit(0);
  }

  StatusOr<bool> bind(const transport::BufferAddresses &buffers, uint64_t count) {
    auto collective = makeDirect(count);
    std::string name = "corrupt-buffers-" + std::to_string(getpid());
    pid_t peer = startPeer(name, buffers, collective->traits);
    auto fabric = join(name, 0);
    StatusOr<bool> bound = false;
    if (fabric.ok() && (*fabric)->meet(Deadline(std::chrono::seconds(30))).ok()) {
      IdState id{7, kRanks};
      id.counters.ensure(collective->binding->program().numBlocks);
      std::vector<std::byte> workspace(workspaceBytes(*collective, kRanks));
      OpenInvocation invocation;
      invocation.collective = collective.get();
      invocation.id = &id;
      invocation.name = "grads";
      invocation.workspace = workspace.data();
      prepare(invocation, **fabric, nullptr, nullptr);
      bound = bindPeers(invocation, **fabric, 1);
    }
    kill(peer, SIGKILL);
    waitpid(peer, nullptr, 0);
    return bound;
  }
};

TEST_F(CorruptBuffers, ABufferNotWhollyInTheHeapIsAnError) {
  constexpr uint64_t kMapped = interpreter::kMappedReference;
  constexpr uint64_t kCount = 1000, kBytes = kCount * sizeof(float);
  constexpr uint64_t kLast = kHeapBytes - kBytes; // where it just fits
  auto right = bind({kMapped, kMapped | kLast, 0}, kCount);
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_TRUE(*right);
  for (uint64_t wrong : {uint64_t{0}, kLast, kMapped | (kLast + 4), kMapped | (kHeapBytes - 4),
                         kMapped | kHeapBytes, ~uint64_t{0}})
    for (size_t kind : {0, 1}) {
      transport::BufferAddresses buffers{kMapped, kMapped, 0};
      buffers[kind] = wrong;
      auto bound = bind(buffers, kCount);
      ASSERT_FALSE(bound.ok()) << kind << ": " << std::hex << wrong;
      EXPECT_EQ(bound.status().code(), StatusCode::InternalError);
      EXPECT_NE(bound.status().message().find("rank 1 announced buffers outside its shared heap"),
                std::string::npos)
          << bound.status().message();
    }
}

} // namespace
} // namespace occl::daemon
