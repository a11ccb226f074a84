// The discrete-event simulation behind predict(). Internal to compiler/cost.
//
// An instruction is looked at when its thread block comes to it. If what it needs is certain to
// come (its sender has begun, ...), the time when it can begin is known and it goes into the queue;
// otherwise the block notes itself where that will happen first, and is looked at again then.
// Instructions begin in the order of time, so that whatever is shared serves in that order.
#pragma once

#include "compiler/cost/Executors.h"
#include "compiler/cost/Network.h"
#include "compiler/cost/Tiles.h"

#include <queue>

namespace occl::cost {

class Simulation {
public:
  Simulation(const plan::Plan &plan, const topology::Topology &topology,
             const PredictOptions &options, Network network);

  support::Expected<Prediction> run();

private:
  /// A thread block, and how far the look at its next instruction has come.
  struct Block {
    uint32_t rank = 0;
    uint64_t tile = 0;
    uint32_t position = 0; // of the next instruction
    uint64_t begun = 0;    // instructions on all tiles
    Picoseconds ready = 0; // when the one before ended
    // Of the next instruction:
    uint32_t checked = 0; // operands and dependencies that are certain
    Picoseconds begin = 0;
    Picoseconds lastSlice = 0; // when the last slice of its messages has arrived
    Wait wait = Wait::None;
    uint32_t cause = kNoCause;
    /// Blocks that wait for this one to have begun so many instructions.
    std::vector<std::pair<uint64_t, uint32_t>> dependents;
  };
  struct Event {
    Picoseconds time;
    uint32_t block;
    bool isEnd;
  };
  /// Ends come before beginnings of the same time: they make room.
  struct Later {
    bool operator()(const Event &a, const Event &b) const {
      return std::tie(a.time, b.isEnd, a.block) > std::tie(b.time, a.isEnd, b.block);
    }
  };

  uint32_t nextOf(const Block &block) const {
    return plan.threadBlocks[&block - blocks.data()].firstInstruction + block.position;
  }

  // Looking: LookAhead.cpp
  /// Queues the block's next instruction if the time when it can begin is certain.
  void look(Block &block);
  bool isCertain(Block &block);
  bool checkSource(Block &block, const plan::Operand &operand, uint32_t earlier);
  bool checkCounter(Block &block, uint32_t connection);
  bool checkDestination(Block &block, const plan::Operand &operand, uint32_t earlier);
  bool checkDependency(Block &block, const plan::Dependency &dependency);
  static void delayUntil(Block &block, Picoseconds time, Wait wait, uint32_t cause);
  /// How many of the operands before this one are the same connection.
  uint32_t earlierOf(uint32_t instruction, std::span<const plan::Operand> operands,
                     size_t position) const;

  // Running
  void countOperandsOfAll();
  void findUsersOfMemory(uint64_t bytes);
  void start(Block &block, Picoseconds now);
  void execute(Block &block, Picoseconds now);
  Picoseconds moveData(const Block &block, const plan::Instruction &instruction, Picoseconds begin,
                       Picoseconds latest, uint64_t bytes, uint32_t &slowest);
  Picoseconds moveToPeers(const Block &block, const plan::Instruction &instruction,
                          Picoseconds begin, Picoseconds latest, uint64_t bytes, uint32_t &slowest);
  void receiveMessages(const Block &block, const StepRecord &step);
  void sendMessages(const StepRecord &step, Picoseconds firstSlice);
  void extendChain(const Block &block, const StepRecord &step);
  void finish(Block &block, Picoseconds now);
  void advance(Block &block);
  void record(Block &block, const StepRecord &step, Picoseconds busy);
  uint32_t indexOf(const Block &block) const {
    return static_cast<uint32_t>(&block - blocks.data());
  }

  support::Expected<Prediction> conclude();

  const plan::Plan &plan;
  const topology::Topology &topology;
  const PredictOptions &options;
  StepCosts costs;
  Tiles tiles;
  Network network;
  Executors executors;
  uint64_t simulatedTiles = 1;
  std::vector<Block> blocks;
  std::vector<OperandCounts> operandCounts; // by instruction
  std::vector<bool> repeatsConnection;      // by instruction: two operands are one connection
  std::vector<bool> usesMemory;             // by node: buffers do not fit the cache
  std::vector<Picoseconds> endOf;           // by instruction: on the tile begun last
  std::vector<uint32_t> chains;             // by instruction: on the first tile
  std::vector<Picoseconds> endOfTile;
  std::priority_queue<Event, std::vector<Event>, Later> events;
  std::vector<uint32_t> woken;
  uint64_t numBegun = 0, numToBegin = 0;
  Prediction result;
};

} // namespace occl::cost
