// What a peer has announced may be damaged: then binding it is an error that says so.
#include "plan/testing/example_plans.h"
#include "runtime/bootstrap/shared_bell.h"
#include "runtime/daemon/open_invocation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kArenaBytes = 1 << 20;

/// Rank 0 of two, with an invocation for which rank 1 has announced what a test says.
class CorruptAnnounce : public testing::Test {
protected:
  void SetUp() override {
    std::vector<std::shared_ptr<bootstrap::SharedBell>> bells;
    for (uint32_t r = 0; r < kRanks; ++r)
      bells.push_back(*bootstrap::SharedBell::makePrivate());
    auto groups = bootstrap::formThreadGroup(bells, transport::Segment::bytesFor(kArenaBytes));
    for (auto &group : *groups) {
      fabrics.push_back(std::make_unique<Fabric>(std::move(group)));
      ASSERT_TRUE(fabrics.back()->format(1).ok());
    }
    for (auto &fabric : fabrics)
      ASSERT_TRUE(fabric->connect().ok());
    CollectiveSpec spec;
    spec.id = 7;
    spec.name = "grads";
    spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(kRanks));
    spec.count = 100;
    collective = std::move(*makeCollective(std::move(spec), 0));
    collective->counters =
        std::make_unique<insight::CollectiveCounters>(collective->binding->program().numBlocks);
    workspace.resize(workspaceBytes(*collective, kRanks));
    invocation.collective = collective.get();
    invocation.id = &id;
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
  constexpr uint64_t kLargest = (uint64_t{1} << 48) - 128;
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
  EXPECT_NE(bound.status().message().find("rank 1 has count 3, type unknown"), std::string::npos)
      << bound.status().message();
}

} // namespace
} // namespace occl::daemon
