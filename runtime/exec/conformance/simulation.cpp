#include "runtime/exec/conformance/simulation.h"

#include "plan/model/chunking_of.h"
#include "runtime/exec/host/step_driver.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"

#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>

namespace occl::interpreter::conformance {

namespace {

/// No invocation has as large words.
constexpr uint64_t kWordsApart = 1 << 20;

} // namespace

StatusOr<std::unique_ptr<Simulation>> Simulation::make(const plan::Plan &plan,
                                                       const SimulationOptions &options) {
  auto simulation = std::make_unique<Simulation>();
  simulation->ranks.resize(plan.numRanks);
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const bool hostSteps = options.hostSteps || (options.mixesSteps && r % 2 != 0);
    auto bound = bind(plan, {.rank = r,
                             .count = options.count,
                             .type = options.type,
                             .op = options.op,
                             .tiles = options.tiles,
                             .placement = options.placement,
                             .lines = options.lines,
                             .referenceBytes = options.referenceBytes,
                             .slotsOffset = options.slotsOffset,
                             .stepOperands = hostSteps ? 0 : options.stepOperands,
                             .hostSteps = hostSteps});
    if (!bound.ok())
      return bound.status();
    simulation->ranks[r].binding = *bound;
    simulation->allocate(simulation->ranks[r], plan, options);
  }
  if (options.blocks.empty())
    simulation->restart();
  else
    simulation->forget();
  return simulation;
}

void Simulation::allocate(Rank &rank, const plan::Plan &plan, const SimulationOptions &options) {
  const Binding &binding = *rank.binding;
  uint32_t number = binding.program().rank;
  const plan::RankPlan &rankPlan = plan.ranks[number];
  auto chunking = plan::chunkingOf(plan, options.count, binding.program().elementBytes);
  uint64_t inputAt = 0, outputAt = 0;
  if (options.inPlace) {
    uint64_t apart = chunking.beginInBuffer(std::abs(int64_t(rankPlan.inPlaceOffset))) *
                     binding.program().elementBytes;
    (rankPlan.inPlaceOffset > 0 ? inputAt : outputAt) = apart;
    uint64_t bytes = std::max(inputAt + binding.inputBytes(), outputAt + binding.outputBytes());
    rank.user[0] = GuardedBuffer(bytes, options.misalignment, 0);
  } else {
    rank.user[0] = GuardedBuffer(binding.inputBytes(), options.misalignment, 0);
    rank.user[1] = GuardedBuffer(binding.outputBytes(), options.misalignment, 0);
  }
  rank.scratch = GuardedBuffer(binding.scratchBytes(), 0, 0x33);
  if (options.blocks.empty())
    rank.arena = GuardedBuffer(binding.arenaBytes(number), 0, 0x44);
  rank.block = options.blocks.empty() ? rank.arena.data() : options.blocks[number];
  rank.places.resize(numPlaces(plan.numRanks, true));
  if (options.blocks.empty())
    rank.progress.resize(binding.progressBytes() / sizeof(uint64_t));
  rank.contexts.resize(binding.program().numBlocks);
  rank.invocation.program = &binding.program();
  rank.invocation.places = rank.places.data();
  rank.places[0] = rank.user[0].data() + inputAt;
  rank.places[1] = rank.user[options.inPlace ? 0 : 1].data() + outputAt;
  rank.places[2] = rank.scratch.data();
  rank.places[kProgressPlace] = options.blocks.empty()
                                    ? reinterpret_cast<char *>(rank.progress.data())
                                    : rank.block + options.progressOffset;
  // All of this process's memory, from address 0 on.
  rank.memory.resize(plan.numRanks, {nullptr, ~kMappedReference, getpid()});
  rank.invocation.peerMemory = rank.memory.data();
  Reference tag = options.mapped ? kMappedReference : 0;
  rank.invocation.inPlace = options.inPlace;
  for (int kind = 0; kind < 2 && options.referenceBytes != 0; ++kind)
    rank.invocation.references[kind] = tag | reinterpret_cast<uint64_t>(rank.places[kind]);
  for (uint32_t b = 0; b < binding.program().numBlocks; ++b) {
    if (binding.steps(b) != nullptr)
      break;
    DeviceBlock &block = rank.onDevice.emplace_back();
    block.tables = makeReadyTables(binding.program(), b);
    block.words.resize(block.tables.sources.size());
  }
}

StepResult Simulation::run(uint32_t r, uint32_t block, BlockContext &context, HostTarget &target,
                           uint32_t maxSlices) {
  Rank &rank = ranks[r];
  if (rank.onDevice.empty())
    return runOnHost(rank.invocation, *rank.binding->steps(block), context, target, maxSlices);
  // A device knows all places before it runs a thread block.
  for (uint32_t other : rank.binding->arenaRanks())
    if (HostTarget::acquire(&rank.places[arenaPlace(other)]) == nullptr)
      return {StepStatus::Blocked, {BlockReason::Announce, 0, other}, 0};
  DeviceBlock &device = rank.onDevice[block];
  if (!device.steps || device.target != &target)
    device.steps.emplace(rank.invocation, rank.binding->program(), device.tables.view(),
                         device.words.data(), target);
  device.target = &target;
  return device.steps->run(context, maxSlices);
}

void Simulation::restart() {
  clear(true);
  for (Rank &rank : ranks)
    rank.invocation.flagBase = 0;
}

void Simulation::next() {
  clear(false);
  for (Rank &rank : ranks)
    rank.invocation.flagBase += rank.binding->program().flagsPerInvocation;
}

void Simulation::clear(bool withLines) {
  for (uint32_t r = 0; r < numRanks(); ++r) {
    Rank &rank = ranks[r];
    const Binding &binding = *rank.binding;
    std::fill_n(rank.block, withLines ? binding.controlBytes(r) : binding.counterBytes(r), 0);
    std::ranges::fill(rank.progress, 0);
  }
  forget();
}

/// What announcements have said, and how far thread blocks have come.
void Simulation::forget() {
  for (uint32_t r = 0; r < numRanks(); ++r) {
    Rank &rank = ranks[r];
    std::fill(rank.places.begin() + arenaPlace(0), rank.places.end(), nullptr);
    rank.places[arenaPlace(r)] = rank.block;
    std::ranges::fill(rank.contexts, BlockContext());
    for (DeviceBlock &block : rank.onDevice)
      block.steps.reset();
  }
}

void Simulation::announce(uint32_t from, uint32_t to) {
  std::copy_n(ranks[from].places.begin(), 3,
              ranks[to].places.begin() + peerBufferPlace(numRanks(), from, 0));
  __atomic_store_n(&ranks[to].places[arenaPlace(from)], ranks[from].block, __ATOMIC_RELEASE);
}

void Simulation::announceAll() {
  for (uint32_t from = 0; from < numRanks(); ++from)
    for (uint32_t to = 0; to < numRanks(); ++to)
      if (from != to) // the own arena is there from the start, and pointers are set once only
        announce(from, to);
}

void Simulation::goOn() {
  for (Rank &rank : ranks) {
    rank.invocation.wordBase += kWordsApart;
    rank.invocation.flagBase += rank.binding->program().flagsPerInvocation;
    rank.contexts.assign(rank.contexts.size(), {});
    for (DeviceBlock &block : rank.onDevice)
      block.steps.reset();
  }
}

bool Simulation::intact() const {
  return std::ranges::all_of(ranks, [](const Rank &rank) {
    return rank.user[0].intact() && rank.user[1].intact() && rank.scratch.intact() &&
           rank.arena.intact();
  });
}

namespace {

std::string describe(uint32_t rank, uint32_t block, const BlockContext &context,
                     const Obstacle &obstacle) {
  const char *reasons[] = {"nothing", "the announcement", "data",
                           "credit",  "a dependency",     "a signal"};
  return "rank " + std::to_string(rank) + ", thread block " + std::to_string(block) +
         ", instruction " + std::to_string(context.instruction) + " on tile " +
         std::to_string(context.tile) + " waits for " +
         reasons[static_cast<unsigned>(obstacle.reason)] + " of rank " +
         std::to_string(obstacle.peer) + " (connection or thread block " +
         std::to_string(obstacle.what) + ")";
}

/// Something that can happen next: a turn of a thread block, or (block kAnnounce) all announcements
/// to a rank.
struct Event {
  uint32_t rank, block;
};
constexpr uint32_t kAnnounce = ~0u;

} // namespace

Status runRandomly(Simulation &simulation, uint64_t seed, uint32_t maxSlices) {
  std::mt19937_64 random(seed);
  std::vector<Event> open, parked; // parked: found blocked since anything last moved
  for (uint32_t r = 0; r < simulation.numRanks(); ++r) {
    open.push_back({r, kAnnounce});
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b)
      open.push_back({r, b});
  }
  auto target = std::make_unique<HostTarget>();
  std::string stuck;
  while (!open.empty()) {
    std::swap(open[random() % open.size()], open.back());
    auto [rank, block] = open.back();
    open.pop_back();
    bool moved = true;
    if (block == kAnnounce) {
      for (uint32_t from = 0; from < simulation.numRanks(); ++from)
        if (from != rank)
          simulation.announce(from, rank);
    } else {
      BlockContext &context = simulation.context(rank, block);
      StepResult result = simulation.run(rank, block, *target, maxSlices);
      moved = result.slices > 0;
      if (result.status == StepStatus::PeerLost)
        return {StatusCode::PeerFailed, describe(rank, block, context, {})};
      if (result.status == StepStatus::Progressed)
        open.push_back({rank, block});
      if (result.status == StepStatus::Blocked) {
        parked.push_back({rank, block});
        stuck = describe(rank, block, context, result.obstacle);
      }
    }
    if (moved) {
      open.insert(open.end(), parked.begin(), parked.end());
      parked.clear();
    }
  }
  return parked.empty() ? Status() : Status(StatusCode::Deadlock, stuck);
}

Status runInThreads(Simulation &simulation, std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  std::atomic<bool> late = false;
  auto runRank = [&](uint32_t rank) {
    HostTarget target;
    std::vector<bool> finished(simulation.numBlocks(rank));
    for (uint32_t left = simulation.numBlocks(rank); left > 0 && !late;) {
      uint32_t slices = 0;
      for (uint32_t b = 0; b < finished.size(); ++b) {
        if (finished[b])
          continue;
        StepResult result = simulation.run(rank, b, target, 16);
        slices += result.slices;
        finished[b] = result.status == StepStatus::Finished;
        left -= finished[b];
      }
      if (slices == 0 && left > 0) {
        std::this_thread::yield();
        if (deadline.passed())
          late = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < simulation.numRanks(); ++r)
    threads.emplace_back(runRank, r);
  simulation.announceAll();
  for (std::thread &thread : threads)
    thread.join();
  return late ? Status(StatusCode::Timeout, "the ranks' threads did not finish in time") : Status();
}

} // namespace occl::interpreter::conformance
