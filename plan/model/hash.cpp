#include "plan/model/hash.h"

#include "support/mix.h"

#include <string_view>

namespace occl::plan {

namespace {

/// Takes in numbers one by one; their order matters.
class Hasher {
public:
  void add(uint64_t number) { state = support::mix(state ^ number) + 0x9e3779b97f4a7c15u; }
  template <typename... Numbers> void addAll(Numbers... numbers) {
    (add(static_cast<uint64_t>(numbers)), ...);
  }
  void add(std::string_view text) {
    add(text.size());
    for (unsigned char c : text)
      add(uint64_t{c});
  }
  uint64_t result() const { return support::mix(state); }

private:
  uint64_t state = kSchemaVersion;
};

void addHeader(Hasher &hasher, const Plan &plan) {
  // The hash is of what the plan does. Files and locations are left out: the same program in
  // another folder is the same plan.
  hasher.add(plan.name);
  hasher.add(plan.collective);
  hasher.add(plan.parameters.size());
  for (const auto &[name, value] : plan.parameters) {
    hasher.add(name);
    hasher.add(static_cast<uint64_t>(value));
  }
  hasher.add(plan.sourceHash);
  hasher.addAll(plan.schemaVersion, plan.numRanks, plan.partChunks, plan.root, plan.outOfPlace,
                plan.inPlace, plan.uniformChunks, plan.hasPostcondition, plan.average,
                plan.protocol, plan.depth, plan.minBytes, plan.maxBytes);
  // The lengths of all arrays, so that elements cannot move from the end of one to the begin of the
  // next with the same sequence of words.
  hasher.addAll(plan.ranks.size(), plan.threadBlocks.size(), plan.instructions.size(),
                plan.operands.size(), plan.dependencies.size(), plan.connections.size(),
                plan.destinations.size(), plan.requirements.size(), plan.contributions.size());
}

} // namespace

uint64_t hashPlan(const Plan &plan) {
  // Small fields share a word, as each word costs a mixing. The order of the fields is part of the
  // hash: ranks of different builds would refuse each other's plans if it changed.
  Hasher hasher;
  addHeader(hasher, plan);
  for (const RankPlan &r : plan.ranks)
    hasher.addAll(r.inputChunks, r.outputChunks, r.scratchChunks, r.inPlaceOffset,
                  r.firstThreadBlock, r.numThreadBlocks);
  for (const ThreadBlock &b : plan.threadBlocks)
    hasher.addAll(b.firstInstruction, b.numInstructions);
  for (const Instruction &i : plan.instructions)
    // The location is left out, as above; it moves with every line that is put before it.
    hasher.addAll(uint64_t{static_cast<uint8_t>(i.opcode)} << 8 | i.final,
                  uint64_t{i.numSources} << 32 | uint64_t{i.numDestinations} << 16 |
                      i.numDependencies,
                  uint64_t{i.count} << 32 | i.extent,
                  uint64_t{i.firstOperand} << 32 | i.firstDependency, i.value);
  for (const Operand &o : plan.operands)
    hasher.addAll(uint64_t{o.rank} << 8 | static_cast<uint8_t>(o.kind), o.index);
  for (const Dependency &d : plan.dependencies)
    hasher.add(uint64_t{d.threadBlock} << 32 | d.instruction);
  for (const Connection &c : plan.connections)
    hasher.addAll(c.source, c.channel, c.firstDestination, c.numDestinations,
                  uint64_t{c.isCounter} << 1 | c.isOrdered);
  for (uint32_t destination : plan.destinations)
    hasher.add(uint64_t{destination});
  for (const Requirement &r : plan.requirements)
    hasher.addAll(r.rank, r.outputChunk, r.count, r.firstContribution, r.numContributions);
  for (const Contribution &c : plan.contributions)
    hasher.add(uint64_t{c.rank} << 32 | c.chunk);
  return hasher.result();
}

} // namespace occl::plan
