// All ranks of one invocation in plain memory of one process: what a daemon sets up, without one.
// For tests and measurements of the interpreter and of plans.
//
// Thread safety: as the interpreter's: one thread at a time for each thread block.
#pragma once

#include "plan/model/plan.h"
#include "runtime/exec/bind/bind.h"
#include "runtime/exec/conformance/guarded_buffer.h"
#include "runtime/exec/host/peer_memory.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/ready_tables.h"
#include "runtime/exec/step/step.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace occl::interpreter::conformance {

struct SimulationOptions {
  uint64_t count = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool inPlace = false;
  TilePolicy tiles = {};
  Placement placement = Placement::AtSource;
  LinePolicy lines = {};
  /// Of the user's buffers from a multiple of 16 bytes.
  uint64_t misalignment = 0;
  /// As in BindRequest; references are to memory that is mapped, or to be read as another
  /// process's.
  uint64_t referenceBytes = 0;
  bool mapped = true;
  /// As in BindRequest.
  uint32_t stepOperands = 0;
  bool hostSteps = false;
  /// Of every second rank, the first one not.
  bool mixesSteps = false;
  /// As in BindRequest.
  uint64_t slotsOffset = 0;
  /// By rank: an arena block that others may have used before, which stays as it is, with the
  /// rank's progress words so many bytes from its begin. Empty: all have their own, which are zero.
  std::vector<char *> blocks = {};
  uint64_t progressOffset = 0;
};

class Simulation {
public:
  /// Fails as bind() does. The plan is used only during the call. Nobody has announced anything
  /// yet.
  static StatusOr<std::unique_ptr<Simulation>> make(const plan::Plan &plan,
                                                    const SimulationOptions &options);

  uint32_t numRanks() const { return static_cast<uint32_t>(ranks.size()); }
  const Program &program(uint32_t rank) const { return ranks[rank].binding->program(); }
  uint32_t numBlocks(uint32_t rank) const { return program(rank).numBlocks; }
  const Binding &binding(uint32_t rank) const { return *ranks[rank].binding; }
  Invocation &invocation(uint32_t rank) { return ranks[rank].invocation; }
  BlockContext &context(uint32_t rank, uint32_t block) { return ranks[rank].contexts[block]; }
  /// So many slices of a thread block at most: by the driver of hosts, or, without
  /// options.hostSteps, as devices have its steps.
  StepResult run(uint32_t rank, uint32_t block, BlockContext &context, HostTarget &target,
                 uint32_t maxSlices);
  StepResult run(uint32_t rank, uint32_t block, HostTarget &target, uint32_t maxSlices) {
    return run(rank, block, context(rank, block), target, maxSlices);
  }

  char *input(uint32_t rank) { return ranks[rank].places[0]; }
  char *output(uint32_t rank) { return ranks[rank].places[1]; }
  char *scratch(uint32_t rank) { return ranks[rank].places[2]; }
  /// Its own, or which options gave it.
  char *arena(uint32_t rank) { return ranks[rank].block; }
  uint64_t inputBytes(uint32_t rank) const { return ranks[rank].binding->inputBytes(); }
  uint64_t outputBytes(uint32_t rank) const { return ranks[rank].binding->outputBytes(); }

  /// Rank `from`'s arena becomes visible to rank `to`.
  void announce(uint32_t from, uint32_t to);
  void announceAll();
  /// All is as after make(), but the contents of the user's buffers. Not in blocks of others.
  void restart();
  /// The next invocation in the same memory: as restart(), but lines stay as they are. Likewise.
  void next();
  /// The next invocation in the same memory, of which nothing is cleared: its words and flags are
  /// larger than those of the ones before.
  void goOn();
  /// Nothing was written outside the buffers, the scratches and the arenas.
  bool intact() const;

private:
  using DeviceSteps = ReadyBlock<HostTarget, Resolution::PerStep>;
  /// The tables of a thread block, room for their words, and who has taken its last steps of this
  /// invocation.
  struct DeviceBlock {
    ReadyBlockTables tables;
    std::vector<ReadyWord> words;
    std::optional<DeviceSteps> steps;
    HostTarget *target = nullptr;
  };
  struct Rank {
    std::shared_ptr<const Binding> binding;
    Invocation invocation;
    GuardedBuffer user[2]; // input and output; in place the first holds both
    GuardedBuffer scratch;
    GuardedBuffer arena; // unless the block is another's
    char *block = nullptr;
    std::vector<char *> places;
    std::vector<PeerMemory> memory;
    std::vector<uint64_t> progress;
    std::vector<BlockContext> contexts;
    std::vector<DeviceBlock> onDevice; // by block; empty: on a host
  };

  void forget();
  void clear(bool withLines);
  void allocate(Rank &rank, const plan::Plan &plan, const SimulationOptions &options);

  std::vector<Rank> ranks;
};

/// Executes everything in one thread: again and again one random block of a random rank, at most
/// `maxSlices` slices of it; announcements come at random times too. The seed decides everything.
/// Deadlock, naming a block and what it waits for, if nothing can move any more.
Status runRandomly(Simulation &simulation, uint64_t seed, uint32_t maxSlices);

/// Executes every rank in a thread of its own. Timeout if it takes longer.
Status runInThreads(Simulation &simulation, std::chrono::milliseconds atMost);

} // namespace occl::interpreter::conformance
