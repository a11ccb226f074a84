#include "compiler/cost/Simulation.h"

#include "plan/model/trace_names.h"

#include <algorithm>

namespace occl::cost {

const char *nameOf(Wait wait) {
  namespace names = plan::trace;
  constexpr std::array<const char *, kNumWaits> kNames = {
      "nothing",          names::kMessage, names::kSignal, names::kCredit,
      names::kDependency, "an executor",   "bandwidth"};
  return kNames[static_cast<size_t>(wait)];
}

Simulation::Simulation(const plan::Plan &plan, const topology::Topology &topology,
                       const PredictOptions &options, Network network)
    : plan(plan), topology(topology), options(options),
      costs(topology.costs, plan.protocol, executionOf(plan, topology.costs, options.bytes)),
      tiles(plan, options.bytes, costs.tileBytes()), network(std::move(network)),
      executors(topology), blocks(plan.threadBlocks.size()), endOf(plan.instructions.size()),
      chains(plan.instructions.size()) {
  // A tile is one pass over all instructions.
  uint64_t perTile = std::max<uint64_t>(plan.instructions.size(), 1);
  // Enough for the pipeline to be full, and what follows to be like what went before.
  constexpr uint64_t kFewestTiles = 2;
  simulatedTiles = std::min(tiles.count(), std::max(options.maxSteps / perTile, kFewestTiles));
  endOfTile.resize(simulatedTiles);
  numToBegin = perTile * simulatedTiles;
  if (plan.instructions.empty())
    numToBegin = 0;
  result.steps.resize(plan.instructions.size());
  result.blocks.resize(blocks.size());
  countOperandsOfAll();
  findUsersOfMemory(options.bytes);
}

void Simulation::countOperandsOfAll() {
  // Counted once and not for each tile: by far most of the time goes into the loop over steps.
  operandCounts.resize(plan.instructions.size());
  repeatsConnection.resize(plan.instructions.size());
  std::vector<uint32_t> lastUser(plan.connections.size(), kNoCause);
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    for (uint32_t b = 0; b < plan.ranks[r].numThreadBlocks; ++b) {
      uint32_t index = plan.ranks[r].firstThreadBlock + b;
      blocks[index].rank = r;
      const plan::ThreadBlock &block = plan.threadBlocks[index];
      for (uint32_t i = block.firstInstruction; i < block.firstInstruction + block.numInstructions;
           ++i) {
        const plan::Instruction &instruction = plan.instructions[i];
        operandCounts[i] = countOperands(plan, instruction, r);
        for (uint32_t k = 0; k < instruction.numSources + instruction.numDestinations; ++k) {
          const plan::Operand &operand = plan.operands[instruction.firstOperand + k];
          if (operand.kind != plan::OperandKind::Connection)
            continue;
          // A connection twice in one instruction needs a look at what comes before it; nearly no
          // instruction has that.
          repeatsConnection[i] = repeatsConnection[i] || lastUser[operand.index] == i;
          lastUser[operand.index] = i;
        }
      }
    }
}

void Simulation::findUsersOfMemory(uint64_t bytes) {
  // What a node's ranks keep in memory, in chunks: beyond the cache, each access costs time of the
  // memory that they share.
  std::vector<uint64_t> chunks(topology.numNodes());
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    chunks[topology.nodeOf(r)] += uint64_t{plan.ranks[r].inputChunks} + plan.ranks[r].outputChunks +
                                  plan.ranks[r].scratchChunks;
  double chunkBytes = static_cast<double>(bytes) / plan.partChunks;
  for (uint64_t count : chunks)
    usesMemory.push_back(topology.costs.memory > 0 &&
                         static_cast<double>(count) * chunkBytes >
                             static_cast<double>(topology.costs.cacheBytes));
}

support::Expected<Prediction> Simulation::run() {
  // Every thread block starts with its first instruction; from then on each looks for its next one
  // when it has begun one.
  for (Block &block : blocks) {
    block.begin = block.ready = topology.costs.start;
    if (plan.threadBlocks[indexOf(block)].numInstructions > 0)
      look(block);
  }
  // Events in the order of time: begins, and ends where executors are limited. Equal times are
  // ordered by thread block, so a prediction is the same each time.
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    Block &block = blocks[event.block];
    if (event.isEnd)
      finish(block, event.time);
    else
      start(block, event.time);
    // Those woken may wake others; the list grows while it is gone through.
    for (size_t i = 0; i < woken.size(); ++i)
      look(blocks[woken[i]]);
    woken.clear();
  }
  return conclude();
}

void Simulation::start(Block &block, Picoseconds now) {
  if (!executors.areLimited() || executors.acquire(block.rank, indexOf(block)))
    execute(block, now);
}

void Simulation::execute(Block &block, Picoseconds now) {
  // What is known of an instruction the moment it begins: how long the thread block is busy with
  // it, and why it did not begin earlier.
  uint32_t index = nextOf(block);
  const plan::Instruction &instruction = plan.instructions[index];
  uint64_t bytes = tiles.bytesOf(instruction, block.tile);
  Picoseconds busy = costs.busy(operandCounts[index], bytes);
  bool waitedForPlace = now > block.begin;
  StepRecord step{index,
                  static_cast<uint32_t>(block.tile),
                  block.ready,
                  now,
                  now + busy,
                  waitedForPlace ? Wait::Executor : block.wait,
                  waitedForPlace ? kNoCause : block.cause};
  // The last slice can only be worked on when it is there.
  Picoseconds slice = busy / topology.costs.slices;
  step.end = std::max(step.end, block.lastSlice + slice);
  // The data may take longer than the thread block: then it waits for the slowest link.
  Picoseconds end = moveData(block, instruction, now, step.end, bytes, step.resource);
  step.delay = end - step.end;
  step.end = end;
  // Chains of waits are the same in each tile.
  if (step.tile == 0)
    extendChain(block, step);
  // What it receives frees places, what it sends can be received: both wake others.
  receiveMessages(block, step);
  sendMessages(step, now + (end - now) / topology.costs.slices);
  record(block, step, busy);
  endOf[index] = end;
  advance(block);
  block.begin = block.ready = end;
  // With fewer executors than thread blocks the end is an event, as the executor goes to another
  // block then.
  if (executors.areLimited())
    events.push({end, indexOf(block), true});
  else
    look(block);
}

Picoseconds Simulation::moveData(const Block &block, const plan::Instruction &instruction,
                                 Picoseconds begin, Picoseconds latest, uint64_t bytes,
                                 uint32_t &slowest) {
  // With LL and LL128 flags travel with the data, so more bytes go over the wire.
  uint64_t wire = costs.wireBytes(bytes);
  const OperandCounts &counts = operandCounts[&instruction - plan.instructions.data()];
  bool fetched = topology.costs.fetched;
  // On hosts the receiver copies out of the sender's memory, so the transfer is in its time; on
  // GPUs the sender stores into the receiver's.
  if (fetched && counts.messageSources > 0) {
    for (const plan::Operand &operand : plan.sourcesOf(instruction))
      if (operand.kind == plan::OperandKind::Connection)
        latest = network.transfer(network.destinationOf(operand.index, block.rank), begin, wire,
                                  latest, slowest);
  } else if (!fetched && counts.receivers > 0) {
    for (const plan::Operand &operand : plan.destinationsOf(instruction)) {
      if (operand.kind != plan::OperandKind::Connection)
        continue;
      const plan::Connection &connection = plan.connections[operand.index];
      for (uint32_t i = 0; i < connection.numDestinations; ++i)
        latest = network.transfer(connection.firstDestination + i, begin, wire, latest, slowest);
    }
  }
  // Direct accesses use links as messages do, without flags.
  if (counts.peerSources + counts.peerDestinations > 0)
    latest = moveToPeers(block, instruction, begin, latest, bytes, slowest);
  uint32_t node = topology.nodeOf(block.rank);
  // All ranks of a node share its memory's bandwidth, but only if the data does not fit into
  // caches.
  if (!usesMemory[node])
    return latest;
  Picoseconds end = network.touchMemory(node, begin, costs.memoryBytes(counts, bytes));
  if (end > latest)
    slowest = network.memoryOf(node);
  return std::max(latest, end);
}

Picoseconds Simulation::moveToPeers(const Block &block, const plan::Instruction &instruction,
                                    Picoseconds begin, Picoseconds latest, uint64_t bytes,
                                    uint32_t &slowest) {
  for (const plan::Operand &operand : plan.sourcesOf(instruction))
    if (operand.rank != block.rank)
      latest = network.transfer(operand.rank, block.rank, begin, bytes, latest, slowest);
  for (const plan::Operand &operand : plan.destinationsOf(instruction))
    if (operand.rank != block.rank)
      latest = network.transfer(block.rank, operand.rank, begin, bytes, latest, slowest);
  return latest;
}

void Simulation::extendChain(const Block &block, const StepRecord &step) {
  // The longest chain of instructions that wait for each other, in instructions: a bound that does
  // not depend on speeds.
  const plan::Instruction &instruction = plan.instructions[step.instruction];
  uint32_t chain = block.position == 0 ? 0 : chains[step.instruction - 1];
  // Through each message that it takes: one more than its sender.
  for (const plan::Operand &operand : plan.sourcesOf(instruction)) {
    if (operand.kind != plan::OperandKind::Connection)
      continue;
    uint32_t sender;
    // A signal comes from the step that gave it.
    if (plan.connections[operand.index].isCounter) {
      if (instruction.value == 0)
        continue;
      sender = network.signalsOf(operand.index)[instruction.value - 1].sender;
    } else {
      uint32_t destination = network.destinationOf(operand.index, block.rank);
      sender = network.message(operand.index, network.receiverAt(destination).count).sender;
    }
    chain = std::max(chain, chains[sender]);
  }
  // Through each dependency; the thread block's own order was the start.
  for (const plan::Dependency &dependency : plan.dependenciesOf(instruction)) {
    uint32_t index = plan.ranks[block.rank].firstThreadBlock + dependency.threadBlock;
    chain =
        std::max(chain, chains[plan.threadBlocks[index].firstInstruction + dependency.instruction]);
  }
  chains[step.instruction] = chain + 1;
  result.chainLength = std::max(result.chainLength, chain + 1);
}

void Simulation::receiveMessages(const Block &block, const StepRecord &step) {
  // Every place that is freed may let a sender go on.
  for (const plan::Operand &operand : plan.sourcesOf(plan.instructions[step.instruction])) {
    bool isMessage =
        operand.kind == plan::OperandKind::Connection && !plan.connections[operand.index].isCounter;
    if (!isMessage)
      continue;
    uint32_t destination = network.destinationOf(operand.index, block.rank);
    Message &message = network.message(operand.index, network.receiverAt(destination).count++);
    // News of the freed place goes back over the link.
    Picoseconds consumed = step.end + network.latencyTo(destination);
    if (consumed >= message.consumed)
      message.consumer = step.instruction;
    message.consumed = std::max(message.consumed, consumed);
    // A multicast's place is free when its last receiver has taken it.
    bool isFree = ++message.consumers == plan.connections[operand.index].numDestinations;
    uint32_t &waiting = network.senderOf(operand.index).waiting;
    if (isFree && waiting != kNobody)
      woken.push_back(std::exchange(waiting, kNobody));
  }
}

void Simulation::sendMessages(const StepRecord &step, Picoseconds firstSlice) {
  // The message can be received from its first slice on; a signal counts when the step is complete.
  for (const plan::Operand &operand : plan.destinationsOf(plan.instructions[step.instruction])) {
    if (operand.kind != plan::OperandKind::Connection)
      continue;
    const plan::Connection &connection = plan.connections[operand.index];
    if (connection.isCounter)
      network.signalsOf(operand.index).push_back({step.end, step.instruction});
    else
      network.message(operand.index, network.senderOf(operand.index).count++) = {
          firstSlice, step.end, step.instruction};
    // Receivers that have looked for it before are woken.
    for (uint32_t i = 0; i < connection.numDestinations; ++i) {
      uint32_t &waiting = network.receiverAt(connection.firstDestination + i).waiting;
      if (waiting != kNobody)
        woken.push_back(std::exchange(waiting, kNobody));
    }
  }
}

void Simulation::advance(Block &block) {
  // The next instruction, or the next tile from the first one on. Everything noted for the last one
  // is cleared.
  ++numBegun;
  ++block.begun;
  if (++block.position == plan.threadBlocks[indexOf(block)].numInstructions) {
    block.position = 0;
    ++block.tile;
  }
  block.checked = 0;
  block.lastSlice = 0;
  block.wait = Wait::None;
  block.cause = kNoCause;
  // Those that depend on what has just begun.
  auto &dependents = block.dependents;
  while (!dependents.empty() && dependents.front().first <= block.begun) {
    woken.push_back(dependents.front().second);
    std::pop_heap(dependents.begin(), dependents.end(), std::greater<>());
    dependents.pop_back();
  }
}

void Simulation::finish(Block &block, Picoseconds now) {
  // If the next instruction can begin at once, the block keeps its executor.
  bool isNextCertain = block.tile < simulatedTiles && isCertain(block);
  if (isNextCertain && block.begin <= now)
    return execute(block, now);
  executors.release(block.rank,
                    [&](uint32_t next, Picoseconds after) { execute(blocks[next], now + after); });
  if (isNextCertain)
    events.push({block.begin, indexOf(block), false});
}

void Simulation::record(Block &block, const StepRecord &step, Picoseconds busy) {
  // Of the first tile each step is kept, for traces and explanations; later ones repeat it.
  if (step.tile == 0)
    result.steps[step.instruction] = step;
  BlockTimes &times = result.blocks[indexOf(block)];
  // Where the time goes: busy, or waiting for one of the reasons.
  times.busy += busy;
  times.waits[static_cast<size_t>(step.wait)] += step.begin - step.ready;
  times.waits[static_cast<size_t>(Wait::Bandwidth)] += step.delay;
  endOfTile[step.tile] = std::max(endOfTile[step.tile], step.end);
  if (options.onStep)
    options.onStep(step);
}

support::Expected<Prediction> Simulation::conclude() {
  // A verified plan comes to its end; this is a bug of the simulation, or a plan that was not
  // verified.
  if (numBegun < numToBegin)
    return support::Status::error(
        "the plan does not come to its end: " + std::to_string(numToBegin - numBegun) + " of " +
        std::to_string(numToBegin) + " steps never begin");
  result.tiles = tiles.count();
  result.simulatedTiles = simulatedTiles;
  // The makespan is that of the last tile that was simulated, and the rest at the pace of the
  // second half.
  result.makespan = topology.costs.start;
  for (Picoseconds end : endOfTile)
    result.makespan = std::max(result.makespan, end);
  // Bytes of a few tiles stand for all.
  double scale = static_cast<double>(result.tiles) / static_cast<double>(simulatedTiles);
  if (result.tiles > simulatedTiles) {
    // The second half of what was simulated shows the pace of the rest.
    uint64_t half = (simulatedTiles - 1) / 2, rest = result.tiles - simulatedTiles;
    Picoseconds pace = (std::max(result.makespan, endOfTile[half]) - endOfTile[half]) /
                       (simulatedTiles - 1 - half);
    result.makespan += pace * rest;
  }
  // How long each link and each memory was busy: the largest of these bounds what any schedule
  // could reach.
  std::span<const Server> servers = network.allServers();
  for (size_t i = 0; i < servers.size(); ++i) {
    std::string name = i < topology.resources().size()
                           ? topology.resources()[i].name
                           : "memory of node " + std::to_string(i - topology.resources().size());
    auto bytes = static_cast<uint64_t>(static_cast<double>(servers[i].bytes) * scale);
    result.resources.push_back({name, bytes, durationOf(bytes, servers[i].bandwidth)});
  }
  return std::move(result);
}

} // namespace occl::cost
