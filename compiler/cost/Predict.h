// Predicts how a plan runs on a topology: a discrete-event simulation of its instructions, in plan
// terms. What is modelled, and what is not: docs/cost_model.md.
#pragma once

#include "compiler/cost/StepCosts.h"
#include "support/status.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace occl::cost {

/// Why a thread block does nothing, or an instruction takes longer than its work.
enum class Wait : uint8_t {
  None,
  Message,    // a message has not arrived; the cause is the instruction that sends it
  Signal,     // a counter is too low; the cause is the instruction that raises it
  Credit,     // a connection is full; the cause is the instruction that will make room
  Dependency, // of another thread block; the cause is the instruction
  Executor,   // all executors of the rank or all cores of the node are busy; no cause
  Bandwidth,  // a link, port or memory is busy; the cause is the resource, see Prediction
};
inline constexpr size_t kNumWaits = 7;
/// "a message", "room", ...
const char *nameOf(Wait wait);

inline constexpr uint32_t kNoCause = ~0u;

/// One instruction on one tile. Times from submission.
struct StepRecord {
  uint32_t instruction = 0; // in Plan::instructions
  uint32_t tile = 0;
  /// Its thread block had nothing else to do from here on.
  Picoseconds ready = 0;
  Picoseconds begin = 0, end = 0;
  /// What held it up last before it began, and since then (Bandwidth or None).
  Wait wait = Wait::None;
  uint32_t cause = kNoCause;
  Picoseconds delay = 0;        // of end - begin: by busy links
  uint32_t resource = kNoCause; // the one that delayed it
};

struct BlockTimes {
  Picoseconds busy = 0; // own work of its instructions
  std::array<Picoseconds, kNumWaits> waits = {};
};

/// Use of something shared, over all tiles.
struct ResourceUse {
  std::string name;
  uint64_t bytes = 0;
  Picoseconds busy = 0; // the time that the bytes take at full bandwidth
};

struct Prediction {
  /// From submission until the last instruction ends.
  Picoseconds makespan = 0;
  /// Chunks are cut into `tiles`; where many are alike the rest is extrapolated from the first.
  uint64_t tiles = 1, simulatedTiles = 1;
  /// Of the first tile, by the index of the instruction.
  std::vector<StepRecord> steps;
  /// Over the simulated tiles, by the index in Plan::threadBlocks.
  std::vector<BlockTimes> blocks;
  /// Over all tiles: those of the topology, then the memory of each node.
  std::vector<ResourceUse> resources;
  /// Instructions on the longest chain in which each waits for the one before, on one tile.
  uint32_t chainLength = 0;
};

struct PredictOptions {
  /// Bytes of a part of the buffers (see Plan::partChunks).
  uint64_t bytes = 0;
  /// Simulate at most about so many instructions, but at least two tiles.
  uint64_t maxSteps = 1u << 20;
  /// If set, called for every simulated step, in the order in which they begin.
  std::function<void(const StepRecord &)> onStep = {};
};

/// The plan's indices must be in range (verifyPlan has accepted it). An error if the topology has
/// another number of ranks, a connection has no link, or the plan does not come to its end. Time is
/// near linear in the simulated steps; the same arguments give the same result.
support::Expected<Prediction> predict(const plan::Plan &plan, const topology::Topology &topology,
                                      const PredictOptions &options);

/// The makespan with no bytes at all: latencies and instructions one after another.
support::Expected<Picoseconds> predictLatency(const plan::Plan &plan,
                                              const topology::Topology &topology);

/// What a plan cannot be faster than, besides its latency: the largest is the bound.
struct Bounds {
  Picoseconds busiestResource = 0;
  std::string resource;
  Picoseconds busiestBlock = 0;
  uint32_t block = 0; // in Plan::threadBlocks
};

Bounds boundsOf(const Prediction &prediction);

} // namespace occl::cost
