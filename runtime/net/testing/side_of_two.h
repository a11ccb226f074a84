// Rank 0 of two that are of different machines, with an invocation in flight, and a connection on
// which a test is rank 1: for tests of what a damaged peer sends. No threads: who has it calls
// send() and receive() of the network.
#pragma once

#include "plan/testing/example_plans.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/network.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace occl::net::testing {

class SideOfTwo {
  static bootstrap::Mapping memory() {
    auto mapped = bootstrap::Mapping::anonymous(transport::Segment::bytesFor(kArenaBytes));
    if (!mapped.ok())
      std::abort();
    return std::move(*mapped);
  }

  bootstrap::Mapping ownMemory, mirrorMemory; // outlive the network
  Doorbell bell;

public:
  static constexpr uint64_t kArenaBytes = 64 << 10, kId = 7, kCount = 100;
  static constexpr uint32_t kSelf = 0, kPeer = 1, kRanks = 2;

  /// connect(regions): rank 0's end of a connection, whose peer writes to these.
  template <class Connect> explicit SideOfTwo(Connect connect) {
    ownMemory = memory();
    mirrorMemory = memory();
    own = *transport::Segment::format(ownMemory.get(), kSelf, kRanks);
    mirror = *transport::Segment::format(mirrorMemory.get(), kPeer, kRanks);
    std::vector<Remote> remotes;
    remotes.push_back(
        {kPeer, connect(regionsFor(mirror, ownMemory.get().data(), kPeer)), mirror, "a test"});
    network = std::make_unique<Network>(std::move(remotes), kRanks, bell);
    network->attach(own,
                    {[this] { return failure; },
                     [this](const Status &cause) { failure = failure.ok() ? cause : failure; }});
    network->setOnMismatch(
        [this](const Call &, uint32_t, const transport::CollectiveTraits &theirs) {
          ++numMismatches;
          lastMismatch = theirs;
        });
    interpreter::BindRequest request = {.rank = kSelf, .count = kCount};
    request.isSimple = true;
    request.headsDistance = kArenaBytes;
    binding = *interpreter::bind(plan::testing::chainBroadcast(kRanks, 8, kPeer), request);
    cells.emplace(own.announceTable());
    open(kId);
  }

  /// Rank 0 submits invocation 0 of another collective.
  void open(uint64_t id) {
    transport::AnnounceCell *cell = cells->take(id);
    cell->beginAt(0);
    cell->publish(0, 0, traits(), {});
    Call call;
    call.id = id;
    call.traits = traits();
    call.cell = cell;
    call.crossing =
        std::make_shared<Crossing>(binding, std::vector<bool>{false, true}, kArenaBytes);
    network->open(std::move(call));
  }

  /// Of rank 0's invocation.
  static transport::CollectiveTraits traits() { return {0x1234, kCount}; }
  /// What rank 1 would send to say that it has submitted the same, with its block at this place.
  Message published(uint64_t arenaOffset) const {
    return {.kind = Message::Publish,
            .id = kId,
            .arenaOffset = arenaOffset,
            .controlBytes = binding->controlBytes(kPeer),
            .headBytes = binding->headBytes(kPeer),
            .planHash = traits().planHash,
            .count = kCount};
  }

  transport::Segment own, mirror;
  std::shared_ptr<const interpreter::Binding> binding;
  std::unique_ptr<Network> network;
  Status failure; // that rank 1 has told of
  uint32_t numMismatches = 0;
  transport::CollectiveTraits lastMismatch; // what rank 1 has

private:
  std::optional<transport::AnnounceOwner> cells;
};

} // namespace occl::net::testing
