// Calls of different plans, counts and types, one after the other, by ranks of which each has
// mirrors of the arenas of other islands, as docs/decisions/gpu/several-machines.md has them. In
// the place of kernels the interpreter for hosts, step by step; connections hold little. Everything
// happens in random order.
#include "runtime/cuda/net/calls_crossing.h"

#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/executor.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/net/network.h"
#include "runtime/net/transport/testing/loop.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

using namespace interpreter;
using namespace interpreter::conformance;

/// Of a rank's memory for calls: something before the block, words with progress, messages.
constexpr uint64_t kBlockOffset = 512, kWords = 24 << 10, kProgress = 8 << 10, kPart = 96 << 10;
constexpr uint64_t kArena = kRecordBytes + 64 + kBlockOffset + kWords + kPart;
struct Call {
  std::unique_ptr<CheckedCollective> checked;
  SimulationOptions options;
  plan::Plan plan;
  std::string what;
  uint16_t signature = 0;
  uint32_t numFinished = 0; // ranks
};

struct Nobody final : net::Sink {
  bool message(std::span<const std::byte>) override { return false; }
};

struct Rank {
  std::vector<std::vector<uint64_t>> memory; // by rank; empty: it is another rank's
  std::vector<std::span<std::byte>> arenas;
  std::unique_ptr<HostArenas> hostArenas;
  std::unique_ptr<CallsCrossing> crossing;
  std::map<uint32_t, std::unique_ptr<net::Endpoint>> endpoints; // by rank of another island
  uint64_t where = 0;                                           // of its memory for calls
  uint64_t call = 0;                                            // the number of the next one
  bool hasBegun = false, hasMet = false;
  std::vector<std::function<void()>> unsaid; // of its begin
  std::vector<std::unique_ptr<Executor<HostTarget>>> open;

  char *arena(uint32_t r) const { return hostArenas->of(r); }
};

class Islands {
public:
  Islands(uint64_t seed, uint64_t firstCall)
      : random(seed), numRanks(2 + static_cast<uint32_t>(random() % 4)), firstCall(firstCall),
        ranks(numRanks) {
    std::vector<uint32_t> island(numRanks);
    for (uint32_t r = 1; r < numRanks; ++r)
      island[r] = static_cast<uint32_t>(random() % 3);
    island[1] = island[0] + 1; // not all in one
    for (uint32_t r = 0; r < numRanks; ++r)
      ranks[r].memory.resize(numRanks);
    for (uint32_t r = 0; r < numRanks; ++r)
      makeRank(r, island);
    for (uint32_t r = 0; r < numRanks; ++r)
      for (uint32_t p = 0; p < r; ++p)
        if (island[r] != island[p])
          std::tie(ranks[r].endpoints[p], ranks[p].endpoints[r]) =
              net::makeLoop(regionsOf(r), regionsOf(p), random() % 2 == 0 ? 1500 : 100000);
  }

  /// What went wrong; empty: nothing.
  std::string run(uint32_t numCalls) {
    const uint64_t end = firstCall + numCalls;
    const auto isOver = [&](const Rank &rank) { return rank.call == end; };
    for (uint32_t inVain = 0; !std::ranges::all_of(ranks, isOver);) {
      const auto r = static_cast<uint32_t>(random() % numRanks);
      const bool moved = !isOver(ranks[r]) && random() % 2 == 0 ? turn(r) : cross(r);
      if (!problem.empty())
        return problem;
      inVain = moved ? 0 : inVain + 1;
      if (inVain > 100000)
        return "nothing moves in call " + std::to_string(ranks[r].call) + ": " +
               calls.at(ranks[r].call).what;
    }
    return "";
  }
  bool wasFull = false;
  uint32_t numAhead = 0;

private:
  net::Regions regionsOf(uint32_t r) {
    net::Regions regions;
    regions[net::kHeapRegion] = ranks[r].arenas[r];
    return regions;
  }

  void makeRank(uint32_t r, const std::vector<uint32_t> &island) {
    Rank &rank = ranks[r];
    std::vector<bool> isRemote;
    for (uint32_t p = 0; p < numRanks; ++p) {
      isRemote.push_back(island[p] != island[r]);
      std::vector<uint64_t> &memory = isRemote[p] ? rank.memory[p] : ranks[p].memory[p];
      memory.resize(kArena / sizeof(uint64_t));
      rank.arenas.push_back(std::as_writable_bytes(std::span(memory)));
    }
    rank.hostArenas = std::make_unique<HostArenas>(r, rank.arenas);
    rank.crossing = std::make_unique<CallsCrossing>(*rank.hostArenas, isRemote, firstCall);
    rank.crossing->setBlock(kBlockOffset);
    rank.call = firstCall;
    rank.where = kRecordBytes + random() % 2 * 64;
  }

  /// Before its first call.
  void publish(uint32_t r) {
    for (uint32_t p = 0; p < numRanks; ++p) {
      RankRecord *record = recordIn(ranks[r].arena(p), 0, r);
      record->where = ranks[r].where + 1;
      record->begun = firstCall;
    }
  }

  /// A connection of the rank does something.
  bool cross(uint32_t r) {
    Rank &rank = ranks[r];
    if (rank.endpoints.empty())
      return false;
    auto at =
        std::next(rank.endpoints.begin(), static_cast<int64_t>(random() % rank.endpoints.size()));
    net::Endpoint &endpoint = *at->second;
    if (endpoint.isDown())
      problem = endpoint.whyDown();
    if (random() % 2 == 0) {
      wasFull |= !rank.crossing->send(at->first, endpoint);
      return rank.crossing->hasMoved();
    }
    Nobody nobody;
    const bool hadSome = !ranks[at->first].endpoints[r]->isDelivered();
    for (uint64_t frames = 1 + random() % 4; frames > 0 && endpoint.receive(nobody); --frames) {
    }
    return hadSome;
  }

  /// As kernels do it: see runtime/cuda/kernels/begin.cuh.
  bool turn(uint32_t r) {
    Rank &rank = ranks[r];
    Call &call = callOf(rank.call);
    if (!problem.empty())
      return false;
    if (!rank.hasBegun) {
      if (recordIn(rank.arena(r), 0, r)->where == 0)
        publish(r);
      if (rank.unsaid.empty())
        tellBegin(r, call);
      // Other machines' threads see it in any order.
      std::swap(rank.unsaid[random() % rank.unsaid.size()], rank.unsaid.back());
      rank.unsaid.back()();
      rank.unsaid.pop_back();
      rank.hasBegun = rank.unsaid.empty();
      return true;
    }
    if (!rank.hasMet && !meet(r, call))
      return false;
    rank.hasMet = true;
    bool moved = false;
    if (!rank.open.empty()) {
      std::swap(rank.open[random() % rank.open.size()], rank.open.back());
      const StepResult result = rank.open.back()->run(1 + static_cast<uint32_t>(random() % 3));
      moved = result.slices > 0 || result.status == StepStatus::Finished;
      if (result.status == StepStatus::Finished)
        rank.open.pop_back();
    }
    if (!rank.open.empty())
      return moved;
    finish(r, call);
    return true;
  }

  void tellBegin(uint32_t r, const Call &call) {
    Rank &rank = ranks[r];
    // Of two: so shapes have places of calls before, of which words are still to be sent.
    const auto place = static_cast<uint16_t>(random() % 2);
    enter(r, call, place);
    const uint64_t number = rank.call;
    for (uint32_t p = 0; p < numRanks; ++p) {
      RankRecord *record = recordIn(rank.arena(p), 0, r);
      rank.unsaid.push_back([=, &call] {
        storeShared(&record->signatures[DeviceCollective::turnOf(number)],
                    signatureWord(number, p == r ? place : call.signature),
                    std::memory_order_relaxed);
      });
      if (p != r)
        rank.unsaid.push_back(
            [=] { storeShared(&record->begun, number + 1, std::memory_order_release); });
    }
  }

  void enter(uint32_t r, const Call &call, uint32_t place) {
    std::vector<bool> isRemote;
    for (uint32_t p = 0; p < numRanks; ++p)
      isRemote.push_back(ranks[r].endpoints.contains(p));
    auto bound = bind(call.plan, {.rank = r,
                                  .count = call.options.count,
                                  .type = call.options.type,
                                  .op = call.options.op,
                                  .tiles = call.options.tiles,
                                  .placement = Placement::AtDestination,
                                  .slotsOffset = kWords});
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    ranks[r].crossing->enter(place, ranks[r].call,
                             std::make_shared<const net::Crossing>(*bound, isRemote, 0));
  }

  bool meet(uint32_t r, Call &call) {
    Rank &rank = ranks[r];
    Simulation &simulation = call.checked->simulation();
    DeviceCollective device;
    device.ring = kMaxRing;
    device.lead = simulation.numBlocks(r) == 0 ? kMaxRing : 1;
    bool isAhead = false;
    for (uint32_t p = 0; p < numRanks; ++p) {
      const RankRecord &record = *recordIn(rank.arena(r), 0, p);
      if (record.where == 0)
        return false;
      if (p == r)
        continue;
      if (!device.letsBegin(record.begun, rank.call))
        return false;
      isAhead |= record.begun <= rank.call;
      const uint64_t said = record.signatures[DeviceCollective::turnOf(rank.call)];
      if (device.lead == 1 && !isSignatureOf(said, rank.call))
        return false;
      if (device.lead == 1 && said != signatureWord(rank.call, call.signature))
        problem = "rank " + std::to_string(r) + " sees another call of rank " + std::to_string(p);
    }
    numAhead += isAhead;
    Invocation &invocation = simulation.invocation(r);
    invocation.wordBase = device.wordBaseOf(rank.call);
    for (uint32_t p = 0; p < numRanks; ++p)
      invocation.places[arenaPlace(p)] =
          rank.arena(p) + recordIn(rank.arena(r), 0, p)->where - 1 + kBlockOffset;
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b)
      rank.open.push_back(std::make_unique<Executor<HostTarget>>(
          simulation, r, b, target, Resolution(random() % 3), random() % 2 == 0));
    return true;
  }

  void finish(uint32_t r, Call &call) {
    const uint64_t number = ranks[r].call++;
    ranks[r].hasBegun = ranks[r].hasMet = false;
    if (++call.numFinished < numRanks)
      return;
    if (Status status = call.checked->check(); !status.ok())
      problem = "call " + std::to_string(number) + ", " + call.what + ": " + status.message();
    calls.erase(number);
  }

  Call &callOf(uint64_t number) {
    auto found = calls.find(number);
    return found != calls.end() ? found->second
                                : calls.emplace(number, makeCall(number)).first->second;
  }

  Call makeCall(uint64_t number) {
    static constexpr TilePolicy tiles[] = {{1 << 20, 1}, {512, 2}, {1024, 3}, {700, 1}};
    Call call;
    call.signature = static_cast<uint16_t>(random());
    for (const NamedProgram *program = nullptr; !program;) {
      program = &programs()[random() % programs().size()];
      call.plan = program->make(numRanks);
      call.what = program->name;
      const auto isDirect = [](const plan::Instruction &instruction) {
        return instruction.opcode == plan::Opcode::LoadReduceStore;
      };
      if (std::ranges::any_of(call.plan.instructions, isDirect))
        program = nullptr;
    }
    call.plan.protocol = plan::Protocol::Simple;
    SimulationOptions &options = call.options;
    options.count = random() % (random() % 2 == 0 ? 40 : 3000);
    options.type = random() % 2 == 0 ? DataType::Float32 : DataType::Int8;
    options.inPlace = call.plan.inPlace && !call.plan.outOfPlace;
    options.tiles = tiles[random() % std::size(tiles)];
    options.placement = Placement::AtDestination;
    options.stepOperands = random() % 2 == 0 ? 0 : 64;
    options.slotsOffset = kWords;
    options.progressOffset = kWords - kProgress;
    for (Rank &rank : ranks)
      options.blocks.push_back(rank.arena(rank.hostArenas->rank()) + rank.where + kBlockOffset);
    while (!fits(call)) {
      options.count /= 2;
    }
    call.what +=
        ", " + std::to_string(options.count) + " elements, " + std::to_string(numRanks) + " ranks";
    auto checked = CheckedCollective::make(call.plan, options, number);
    if (!checked.ok())
      problem = call.what + ": " + checked.status().message();
    else
      call.checked = std::move(*checked);
    return call;
  }

  bool fits(Call &call) const {
    if (call.plan.uniformChunks)
      call.options.count -= call.options.count % call.plan.partChunks;
    auto bound = bind(call.plan, {.count = call.options.count,
                                  .type = call.options.type,
                                  .op = call.options.op,
                                  .tiles = call.options.tiles,
                                  .placement = Placement::AtDestination,
                                  .slotsOffset = kWords});
    if (!bound.ok() || call.options.count == 0)
      return true;
    for (uint32_t r = 0; r < numRanks; ++r)
      if ((*bound)->arenaBytes(r) > kWords + kPart ||
          (*bound)->counterBytes(r) > kWords - kProgress)
        return false;
    return true;
  }

  std::mt19937_64 random;
  const uint32_t numRanks;
  const uint64_t firstCall;
  std::vector<Rank> ranks;
  std::map<uint64_t, Call> calls;
  HostTarget target;
  std::string problem;
};

TEST(CallsCrossing, CallsBetweenIslandsGiveTheReference) {
  const uint64_t seed = printedSeed();
  bool wasFull = false;
  uint32_t numAhead = 0;
  for (uint64_t firstCall : {uint64_t{0}, uint64_t{12345}, (uint64_t{1} << 23) - 30}) {
    for (uint64_t i = 0; i < 4; ++i) {
      const auto islands = std::make_unique<Islands>(seed + firstCall + i, firstCall);
      ASSERT_EQ(islands->run(60), "") << "first call " << firstCall << ", " << i;
      wasFull |= islands->wasFull;
      numAhead += islands->numAhead;
    }
  }
  EXPECT_TRUE(wasFull);
  std::cout << "calls that a rank began before others: " << numAhead << std::endl;
}

} // namespace
} // namespace occl::cuda
