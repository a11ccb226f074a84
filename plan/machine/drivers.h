// Which block has the next turn on the machine of machine.h.
#pragma once

#include "plan/machine/machine.h"

#include <utility>

namespace occl::plan::machine {

/// Runs every block as far as it can, the first one first; the one that just got what it waits for
/// goes on next. What can run stays able to, so this ends with all blocks done if any order does.
/// A Program has indexOf(block, position) below numInstructions(), too, if it has dependencies.
template <class Program> class Greedy {
public:
  Greedy(const Program &program, uint32_t depth)
      : program(program), machine(program, depth), waits(machine.numBlocks()),
        nextWaiter(machine.numBlocks(), kNone) {}

  /// Whether every block has come to its end. Calls ran(block, position) for each instruction.
  template <class Ran> bool run(Ran ran) {
    for (uint32_t block = 0; block < machine.numBlocks(); ++block) {
      advance(block, ran);
      while (!woken.empty()) {
        const uint32_t next = woken.back();
        woken.pop_back();
        advance(next, ran);
      }
    }
    for (uint32_t block = 0; block < machine.numBlocks(); ++block)
      if (!machine.isDone(block))
        return false;
    return true;
  }

  /// How far blocks have come, and which one could end a wait.
  const Machine<Program> &state() const { return machine; }
  /// What a block that run() has left unfinished waits for.
  const Wait &waitOf(uint32_t block) const { return waits[block]; }

private:
  template <class Ran> void advance(uint32_t block, Ran &ran) {
    while (!machine.isDone(block)) {
      waits[block] = machine.look(block);
      if (waits[block].need == Need::Dependency)
        enlist(block);
      if (waits[block].need != Need::Nothing)
        return;
      const uint32_t position = machine.next(block);
      ran(block, position);
      machine.run(block, [&](uint32_t other, Need need, uint32_t end) {
        if (waits[other].need == need && waits[other].end == end)
          wake(other);
      });
      wakeDependents(block, position);
    }
  }

  void enlist(uint32_t block) {
    if (firstWaiter.empty())
      firstWaiter.resize(program.numInstructions(), kNone);
    uint32_t &first = firstWaiter[program.indexOf(waits[block].block, waits[block].position)];
    nextWaiter[block] = std::exchange(first, block);
  }

  void wakeDependents(uint32_t block, uint32_t position) {
    if (firstWaiter.empty())
      return;
    uint32_t waiter = std::exchange(firstWaiter[program.indexOf(block, position)], kNone);
    while (waiter != kNone) {
      const uint32_t following = nextWaiter[waiter];
      wake(waiter);
      waiter = following;
    }
  }

  void wake(uint32_t block) {
    waits[block].need = Need::Nothing;
    woken.push_back(block);
  }

  const Program &program;
  Machine<Program> machine;
  std::vector<Wait> waits;           // of blocks
  std::vector<uint32_t> nextWaiter;  // of a block: one that waits for the same instruction
  std::vector<uint32_t> firstWaiter; // of an instruction: a block that depends on it
  std::vector<uint32_t> woken;       // blocks
};

/// Runs the blocks in their order, each to its end, and of other blocks what it waits for and no
/// more. False if blocks wait for each other in a circle. Calls ran(block, position) for each
/// instruction.
template <class Program, class Ran>
bool runOnDemand(const Program &program, uint32_t depth, Ran ran) {
  Machine<Program> machine(program, depth);
  struct Demand {
    uint32_t block;
    Wait until; // this holds; to its end, if it is for nothing
  };
  std::vector<Demand> open;
  std::vector<bool> isOpen(machine.numBlocks());
  auto demand = [&](uint32_t block, const Wait &until) {
    open.push_back({block, until});
    isOpen[block] = true;
  };
  for (uint32_t block = 0; block < machine.numBlocks(); ++block) {
    demand(block, {});
    while (!open.empty()) {
      const Demand top = open.back();
      const bool isDone = machine.isDone(top.block);
      if (top.until.need == Need::Nothing ? isDone : machine.holds(top.until)) {
        isOpen[top.block] = false;
        open.pop_back();
        continue;
      }
      const Wait wait = isDone ? top.until : machine.look(top.block);
      if (wait.need == Need::Nothing) {
        ran(top.block, machine.next(top.block));
        machine.run(top.block, [](uint32_t, Need, uint32_t) {});
        continue;
      }
      const uint32_t other = machine.blockThatEnds(wait);
      if (other == kNone || isOpen[other])
        return false;
      demand(other, wait);
    }
  }
  return true;
}

} // namespace occl::plan::machine
