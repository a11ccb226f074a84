#include "compiler/passes/blocks/ThreadBlocks.h"

#include "llvm/ADT/DenseMap.h"

#include <numeric>

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;

namespace {

constexpr uint32_t kNone = ~0u;

/// The steps of a rank in groups that one thread block must do.
class Groups {
public:
  Groups(const Program &program, uint32_t index)
      : program(program), rank(program.ranks[index]), index(index), parent(rank.steps.size()),
        asking(rank.steps.size(), kNone) {
    std::iota(parent.begin(), parent.end(), 0);
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (rank.steps[i].instruction.threadBlock >= 0)
        asking[i] = i;
  }

  /// Local steps belong to the message that came before them, unless they ask for another block or
  /// are to be spread.
  LogicalResult form(bool spreadLocal) {
    // A connection's end has one thread block: all steps that use it are one group.
    llvm::DenseMap<uint32_t, uint32_t> user; // a step at this rank's end of each connection
    uint32_t previous = 0;
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      const Instruction &instruction = rank.steps[i].instruction;
      bool hasMessage = false;
      // Messages tie steps together, whatever their order.
      for (const inst::Places *places : {&instruction.sources, &instruction.destinations})
        for (const Place &place : *places) {
          if (place.isLocal())
            continue;
          hasMessage = true;
          if (failed(tie(i, user.try_emplace(place.index, i).first->second, place.index)))
            return failure();
        }
      // Local steps go along with the step before, which they most likely wait for.
      if (!hasMessage && !spreadLocal && blockOf(find(i)) < 0)
        join(i, previous);
      previous = i;
    }
    return success();
  }

  /// The number of the step's group: a step of it.
  uint32_t find(uint32_t step) {
    while (parent[step] != step)
      step = parent[step] = parent[parent[step]];
    return step;
  }

  /// The thread block that a group asks for, or -1.
  int32_t blockOf(uint32_t group) const {
    return asking[group] == kNone ? -1 : rank.steps[asking[group]].instruction.threadBlock;
  }

private:
  void join(uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    // The first step is the group's number, so that numbers do not depend on the order of joining.
    if (b < a)
      std::swap(a, b);
    parent[b] = a;
    // The group asks for a block if any of its steps does.
    if (asking[a] == kNone)
      asking[a] = asking[b];
  }

  LogicalResult tie(uint32_t step, uint32_t other, uint32_t connection) {
    uint32_t a = find(step), b = find(other);
    if (blockOf(a) >= 0 && blockOf(b) >= 0 && blockOf(a) != blockOf(b))
      return report(step, asking[a], asking[b], connection);
    join(a, b);
    return success();
  }

  LogicalResult report(uint32_t step, uint32_t a, uint32_t b, uint32_t connection) const {
    // Two kinds of conflict: one end of a connection used with two blocks, or two groups that meet
    // in a step.
    const inst::Connection &line = program.connections[connection];
    int32_t blocks[] = {rank.steps[a].instruction.threadBlock,
                        rank.steps[b].instruction.threadBlock};
    auto error = emitError(location(step));
    if (uses(a, connection) && uses(b, connection)) {
      bool sends = line.source == index;
      error << "rank " << index << (sends ? " sends to rank " : " receives from rank ")
            << (sends ? line.destinations.front() : line.source) << " on channel " << line.channel
            << " with thread block " << blocks[0] << " here and " << blocks[1]
            << " there; an end of a connection has one owner: give one of them another channel ["
            << (sends ? "E106]" : "E107]");
    } else {
      error << "thread blocks " << blocks[0] << " and " << blocks[1] << " of rank " << index
            << " meet here: instructions take part in messages of both; ask for one block, or for "
               "other channels [E108]";
      if (a != step)
        error.attachNote(location(a)) << "thread block " << blocks[0] << " is asked for here";
    }
    error.attachNote(location(b)) << "thread block " << blocks[1] << " is asked for here";
    return error;
  }

  bool uses(uint32_t step, uint32_t connection) const {
    const Instruction &instruction = rank.steps[step].instruction;
    auto isIt = [&](const Place &place) { return !place.isLocal() && place.index == connection; };
    return llvm::any_of(instruction.sources, isIt) || llvm::any_of(instruction.destinations, isIt);
  }

  Location location(uint32_t step) const { return rank.steps[step].location; }

  const Program &program;
  const Rank &rank;
  uint32_t index;
  std::vector<uint32_t> parent; // of each step, towards the first of its group
  std::vector<uint32_t> asking; // of each group: a step that asks for a thread block
};

/// Distributes groups over thread blocks.
class Assignment {
public:
  Assignment(Program &program, uint32_t index, Groups &groups, const passes::BlockOptions &options,
             const passes::StepTimes &times)
      : program(program), rank(program.ranks[index]), groups(groups), options(options),
        times(times) {}

  LogicalResult run() {
    // Groups that ask for a block get it; the others are distributed.
    std::vector<uint32_t> open; // groups that ask for nothing
    std::vector<int32_t> block(rank.steps.size(), -1);
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      if (groups.find(i) != i)
        continue;
      block[i] = groups.blockOf(i);
      if (block[i] < 0)
        open.push_back(i);
      else if (static_cast<uint32_t>(block[i]) >= options.limit)
        return report(block[i]);
    }
    distribute(open, block);
    renumber(block);
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      rank.steps[i].instruction.threadBlock = block[groups.find(i)];
    return success();
  }

private:
  void distribute(llvm::ArrayRef<uint32_t> open, std::vector<int32_t> &block) {
    if (options.limit == 1) {
      for (uint32_t group : open)
        block[group] = 0;
      return;
    }
    std::vector<passes::StepGroup> described = describe();
    // What was asked for is load already.
    std::vector<uint64_t> load(options.limit, 0);
    for (auto [group, asked] : llvm::enumerate(block))
      if (asked >= 0)
        load[asked] += described[group].work;
    std::vector<passes::StepGroup> toPlace;
    for (uint32_t group : open)
      toPlace.push_back(std::move(described[group]));
    for (auto [group, place] :
         llvm::zip(open, passes::layOut(options.layout, toPlace, std::move(load))))
      block[group] = static_cast<int32_t>(place);
  }

  /// What groups do, by their number.
  std::vector<passes::StepGroup> describe() {
    // What each group does, under the number of its first step: work, and, if the layout asks for
    // it, time and peers.
    std::vector<passes::StepGroup> described(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      const Instruction &instruction = rank.steps[i].instruction;
      passes::StepGroup &group = described[groups.find(i)];
      if (!times.begins.empty()) {
        uint64_t begin = times.begins[i];
        group.begin = groups.find(i) == i ? begin : std::min(group.begin, begin);
        group.end = std::max(group.end, begin + times.durations[i]);
      }
      group.work += program.weights.workOf(instruction);
      if (options.layout == passes::BlockLayout::Peers)
        addPeers(instruction, group);
    }
    for (passes::StepGroup &group : described) {
      llvm::sort(group.peers);
      group.peers.erase(std::unique(group.peers.begin(), group.peers.end()), group.peers.end());
    }
    return described;
  }

  void addPeers(const Instruction &instruction, passes::StepGroup &group) const {
    // Ranks at the other ends of its messages.
    forEachMessage(instruction.sources, [&](const Place &place) {
      group.peers.push_back(program.connections[place.index].source);
    });
    forEachMessage(instruction.destinations, [&](const Place &place) {
      const auto &receivers = program.connections[place.index].destinations;
      group.peers.append(receivers.begin(), receivers.end());
    });
  }

  /// Leaves out the blocks that have nothing to do.
  void renumber(std::vector<int32_t> &block) const {
    // Numbers become consecutive, in the same order: plans have no empty thread blocks in between.
    std::vector<int32_t> number(options.limit, -1);
    for (int32_t used : block)
      if (used >= 0)
        number[used] = 0;
    int32_t next = 0;
    for (int32_t &entry : number)
      if (entry == 0)
        entry = next++;
    for (int32_t &entry : block)
      if (entry >= 0)
        entry = number[entry];
  }

  LogicalResult report(int32_t block) const {
    auto step = llvm::find_if(rank.steps,
                              [&](const Step &s) { return s.instruction.threadBlock == block; });
    return emitError(step->location)
           << "this asks for thread block " << block << ", but --max-thread-blocks allows "
           << options.limit << ", from 0 on [E109]";
  }

  Program &program;
  Rank &rank;
  Groups &groups;
  const passes::BlockOptions &options;
  const passes::StepTimes &times;
};

} // namespace

LogicalResult passes::assignThreadBlocks(Program &program, uint32_t index,
                                         const BlockOptions &options, const StepTimes &times) {
  Groups groups(program, index);
  if (failed(groups.form(options.spreadLocal)))
    return failure();
  return Assignment(program, index, groups, options, times).run();
}
