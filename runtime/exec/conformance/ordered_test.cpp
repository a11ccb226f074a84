// Calls of different plans, protocols, counts and types, one after the other in the same arena
// blocks, of which nothing is cleared, as ordered connectors have them (runtime/cuda/
// ordered_connectors.h): numbers, flags, which block and who may begin are DeviceCollective's.
#include "plan/model/names.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/executor.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/target_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

/// Of a block of programs of lines: words, lines of LL, lines of LL128; of the one behind all of
/// these, which the others share: words, messages. Small, so that programs meet.
constexpr uint64_t kWords = 24 << 10, kProgress = 8 << 10;
constexpr uint64_t kPart = 192 << 10;
constexpr uint64_t kBlock = kWords + 2 * kPart;
constexpr uint32_t kRing = cuda::kMaxRing;
constexpr uint64_t kSharedBlock = kRing * kBlock;
constexpr uint64_t kArena = kSharedBlock + kWords + kPart;

/// What a sequence lacks of what makes it right.
enum class Flaw { None, NoWordBase, NoFlagBase, SharedParts, NoLead, SharedBlockAhead };

cuda::DeviceCollective ordered(uint32_t lead) {
  cuda::DeviceCollective device;
  device.ring = kRing;
  device.lead = lead;
  device.ringStride = kBlock;
  return device;
}

/// A call that some rank has come to and not all have finished.
struct Call {
  uint64_t number;
  std::string what;
  std::unique_ptr<CheckedCollective> checked;
  bool isDirect = false;
  bool isShared = false;    // its block
  uint32_t numFinished = 0; // ranks
};

/// Where a rank stands: it has announced its call, which is calls.front() and so many more, and has
/// finished those before.
struct Standing {
  uint64_t call = 0;
  uint32_t lead = 1;
  bool hasBegun = false;
  std::vector<std::unique_ptr<Executor<HostTarget>>> open;
};

class Sequence {
public:
  /// Calls are numbered from `first`.
  Sequence(uint64_t seed, uint64_t first, Flaw flaw)
      : random(seed), flaw(flaw), numRanks(2 + static_cast<uint32_t>(random() % 4)),
        hasWide(random() % 2 == 0), first(first) {
    for (uint32_t r = 0; r < numRanks; ++r) {
      arenas.emplace_back(kArena, 0, 0);
      chooseLead(ranks.emplace_back());
      ranks[r].call = first;
    }
  }

  Status run(uint32_t numCalls) {
    const uint64_t end = first + numCalls;
    auto isOver = [&](const Standing &rank) { return rank.call == end; };
    for (uint32_t inVain = 0; !std::ranges::all_of(ranks, isOver);) {
      const uint32_t r = static_cast<uint32_t>(random() % numRanks);
      // A rank goes on as far as it can now and then: others are behind then.
      for (uint64_t turns = random() % 8 == 0 ? 10000 : 4; turns > 0 && !isOver(ranks[r]);
           --turns) {
        auto moved = turn(r);
        if (!moved.ok())
          return moved.status();
        inVain = *moved ? 0 : inVain + 1;
        if (!*moved && random() % 8 == 0)
          break;
      }
      if (inVain > 100000)
        return {StatusCode::Deadlock, describe("nothing moves", calls.front())};
    }
    for (const GuardedBuffer &arena : arenas)
      if (!arena.intact())
        return {StatusCode::InternalError, "something was written outside of the blocks"};
    return {};
  }
  /// Thread blocks by when their steps are made ready, and calls that a rank began before others
  /// were there.
  std::array<uint32_t, 3> numWith = {};
  uint32_t numAhead = 0;

private:
  /// Whether anything moved.
  StatusOr<bool> turn(uint32_t r) {
    Standing &rank = ranks[r];
    auto call = callOf(rank.call);
    if (!call.ok())
      return call.status();
    if (!rank.hasBegun)
      return begin(r, **call);
    bool moved = false;
    if (!rank.open.empty()) {
      std::swap(rank.open[random() % rank.open.size()], rank.open.back());
      const uint32_t most = random() % 4 == 0 ? ~0u : 1 + static_cast<uint32_t>(random() % 3);
      const StepResult result = rank.open.back()->run(most);
      moved = result.slices > 0 || result.status == StepStatus::Finished;
      if (result.status == StepStatus::Finished)
        rank.open.pop_back();
    }
    if (!rank.open.empty())
      return moved;
    Status finished = finish(r, **call);
    if (!finished.ok())
      return finished;
    return true;
  }

  StatusOr<bool> begin(uint32_t r, Call &call) {
    Standing &rank = ranks[r];
    // Who needs the others' buffers waits until they have said where these are, and who has the
    // shared block until they have finished the call before.
    const bool meets = call.isDirect || (call.isShared && flaw != Flaw::SharedBlockAhead);
    const auto device = ordered(meets ? 1 : rank.lead);
    bool isAhead = false;
    for (const Standing &peer : ranks) {
      isAhead |= peer.call < call.number;
      if (flaw != Flaw::NoLead && !device.letsBegin(peer.call + 1, call.number))
        return false;
    }
    if (flaw == Flaw::NoLead && call.isDirect && isAhead)
      return false;
    numAhead += isAhead;
    Simulation &simulation = call.checked->simulation();
    Invocation &invocation = simulation.invocation(r);
    invocation.wordBase = flaw == Flaw::NoWordBase ? 0 : device.wordBaseOf(call.number);
    invocation.flagBase = flaw == Flaw::NoFlagBase ? 0 : device.flagBaseOf(call.number);
    for (uint32_t from = 0; from < numRanks; ++from)
      if (from != r)
        simulation.announce(from, r);
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
      rank.open.push_back(std::make_unique<Executor<HostTarget>>(
          simulation, r, b, target, Resolution(random() % 3), random() % 2 == 0));
      numWith[static_cast<size_t>(rank.open.back()->resolution())]++;
    }
    rank.hasBegun = true;
    return true;
  }

  Status finish(uint32_t r, Call &call) {
    const auto device = ordered(1);
    if (device.clearsLines(call.number))
      std::memset(block(r, call.number, false) + kWords, 0, kPart);
    ranks[r].call = call.number + 1;
    ranks[r].hasBegun = false;
    chooseLead(ranks[r]);
    Status status;
    if (++call.numFinished == numRanks)
      status = call.checked->check();
    if (!status.ok())
      return {status.code(), describe(status.message(), call)};
    while (!calls.empty() && calls.front().numFinished == numRanks)
      calls.pop_front();
    return {};
  }

  void chooseLead(Standing &rank) { rank.lead = random() % 2 == 0 ? 1 : kRing; }
  char *block(uint32_t r, uint64_t number, bool isShared) {
    auto device = ordered(1);
    if (isShared) {
      std::ranges::fill(device.ringOffsets, kSharedBlock);
      device.ringStride = 0;
    }
    return arenas[r].data() + device.blockOffset(number, r);
  }

  StatusOr<Call *> callOf(uint64_t number) {
    for (Call &call : calls)
      if (call.number == number)
        return &call;
    auto made = makeCall(number);
    if (!made.ok())
      return made.status();
    calls.push_back(std::move(*made));
    return &calls.back();
  }

  StatusOr<Call> makeCall(uint64_t number) {
    static constexpr plan::Protocol protocols[] = {plan::Protocol::Simple, plan::Protocol::LL,
                                                   plan::Protocol::LL128};
    static constexpr TilePolicy tiles[] = {{1 << 20, 1}, {512, 2}, {1024, 3}, {700, 1}};
    // Several in a row let a rank that waits for nobody come as far as it may.
    if (number == first || random() % 4 == 0)
      lastProgram = static_cast<uint32_t>(random() % programs().size());
    const NamedProgram &program = programs()[lastProgram];
    plan::Plan plan = program.make(numRanks);
    plan.protocol = protocols[random() % 3];
    const bool isShift = std::string(program.name) == "shift"; // in place its input is gone
    SimulationOptions options;
    options.count = random() % (random() % 2 == 0 ? 40 : 3000);
    options.type = DataType(random() % kNumDataTypes);
    options.op = ReduceOp(random() % kNumReduceOps);
    // Sums that are divided at the end: 15 and 9 are no numbers of that type.
    if (options.type == DataType::Float8E5m2 && options.op == ReduceOp::Avg && numRanks % 2 != 0)
      options.op = ReduceOp::Sum;
    options.inPlace = plan.inPlace && !isShift && (!plan.outOfPlace || random() % 2 == 0);
    options.tiles = tiles[random() % std::size(tiles)];
    options.placement = Placement::AtDestination;
    options.lines = {128, 896, 32 << 10, hasWide};
    options.stepOperands = random() % 2 == 0 ? 0 : 64;
    const uint64_t part = partOf(plan.protocol);
    options.slotsOffset = flaw == Flaw::SharedParts ? 0 : part;
    bool isShared = false;
    Status status = cut(plan, part, options, isShared);
    if (!status.ok())
      return status;
    for (uint32_t r = 0; r < numRanks; ++r)
      options.blocks.push_back(block(r, number, isShared));
    options.progressOffset = kWords - kProgress;
    Call call{number, std::string(program.name) + ", " + std::string(plan::nameOf(plan.protocol)),
              nullptr};
    call.what += ", " + std::to_string(options.count) + " of " + nameOf(options.type) + ", " +
                 nameOf(options.op);
    auto checked = CheckedCollective::make(plan, options, number);
    if (!checked.ok())
      return Status(checked.status().code(), describe(checked.status().message(), call));
    call.checked = std::move(*checked);
    call.isShared = isShared;
    for (uint32_t r = 0; r < numRanks; ++r)
      call.isDirect |= !call.checked->simulation().binding(r).directRanks().empty();
    return call;
  }

  uint64_t partOf(plan::Protocol protocol) const {
    return protocol == plan::Protocol::LL128 && hasWide ? kWords + kPart : kWords;
  }

  /// To a count for which there is room. isShared: it has no lines.
  Status cut(const plan::Plan &plan, uint64_t part, SimulationOptions &options,
             bool &isShared) const {
    for (;; options.count /= 2) {
      if (plan.uniformChunks)
        options.count -= options.count % plan.partChunks;
      auto bound = bind(plan, {.count = options.count,
                               .type = options.type,
                               .op = options.op,
                               .tiles = options.tiles,
                               .placement = options.placement,
                               .lines = options.lines,
                               .slotsOffset = options.slotsOffset,
                               .stepOperands = options.stepOperands});
      if (!bound.ok())
        return bound.status();
      bool fits = (*bound)->program().flagsPerInvocation <= cuda::kOrderedFlags &&
                  (*bound)->progressBytes() <= kProgress;
      for (uint32_t r = 0; r < numRanks; ++r)
        fits &= (*bound)->arenaBytes(r) <= part + kPart &&
                (*bound)->counterBytes(r) <= kWords - kProgress;
      isShared = (*bound)->program().line.bytes == 0;
      if (fits)
        return {};
      if (options.count == 0)
        return {StatusCode::InternalError, plan.name + " fits with no count"};
    }
  }

  std::string describe(const std::string &text, const Call &call) const {
    return text + "\n  call " + std::to_string(call.number) + ", the one after " +
           std::to_string(call.number - first) + " others: " + call.what + ", " +
           std::to_string(numRanks) + " ranks";
  }
  std::mt19937_64 random;
  const Flaw flaw;
  const uint32_t numRanks;
  const bool hasWide;
  const uint64_t first;
  uint32_t lastProgram = 0;
  std::vector<GuardedBuffer> arenas; // by rank: its blocks
  std::vector<Standing> ranks;
  std::deque<Call> calls;
  HostTarget target;
};

/// The calls where the flags of LL come again, and where blocks are cleared first.
constexpr uint64_t kFlagsWrap = (uint64_t{1} << 32) / cuda::kOrderedFlags * kRing;
constexpr uint64_t kClears = uint64_t{cuda::kUsesUncleared} * kRing;

TEST(Ordered, CallsInTheSameBlocksGiveTheReference) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::array<uint32_t, 3> with = {};
  uint32_t ahead = 0;
  for (uint64_t first : {uint64_t{0}, kClears - 60, kFlagsWrap - 60, uint64_t{12345}}) {
    auto sequence = std::make_unique<Sequence>(seed + first, first, Flaw::None);
    Status status = sequence->run(250);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ", first " << first << ": " << status.message();
    for (size_t i = 0; i < with.size(); ++i)
      with[i] += sequence->numWith[i];
    ahead += sequence->numAhead;
  }
  for (uint32_t number : with)
    EXPECT_GT(number, 0u);
  EXPECT_GT(ahead, 0u);
}

/// Or what the test above passes would show nothing.
TEST(Ordered, CallsGoWrongWithoutWhatKeepsThemApart) {
  for (Flaw flaw : {Flaw::NoWordBase, Flaw::NoFlagBase, Flaw::SharedParts, Flaw::NoLead,
                    Flaw::SharedBlockAhead}) {
    bool isWrong = false;
    for (uint64_t seed = 1; seed <= 30 && !isWrong; ++seed)
      isWrong = !std::make_unique<Sequence>(seed, 0, flaw)->run(120).ok();
    EXPECT_TRUE(isWrong) << "flaw " << static_cast<int>(flaw);
  }
}

} // namespace
} // namespace occl::interpreter::conformance
