#include "plan/verify/races.h"

#include "plan/verify/happens_before.h"

#include <algorithm>

namespace occl::plan::verify {

namespace {

class RaceChecker {
public:
  RaceChecker(const Network &network, const Execution &execution, AliasMode mode)
      : plan(network.plan), network(network), mode(mode), locations(plan, mode),
        search(network, execution), clocks(network, search) {
    groupByRank(execution);
  }

  Finding run() {
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
      if (Finding finding = checkRank(rank))
        return finding;
    return {};
  }

private:
  /// What happened to a location so far.
  struct History {
    uint32_t lastWrite = kNone;
    uint32_t firstRead = kNone; // since the last write, in `reads`
    bool isEverWritten = false;
  };
  struct Read {
    uint32_t instruction;
    uint32_t next; // in `reads`
  };

  /// The order of execution, rank by rank: its own instructions, and those that access its memory.
  void groupByRank(const Execution &execution) {
    firstOfRank.assign(plan.numRanks + 1, 0);
    for (uint32_t index : execution.order)
      forEachRank(index, [&](uint32_t rank) { ++firstOfRank[rank + 1]; });
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
      firstOfRank[rank + 1] += firstOfRank[rank];
    std::vector<uint32_t> next(firstOfRank.begin(), firstOfRank.end() - 1);
    order.resize(firstOfRank.back());
    for (uint32_t index : execution.order)
      forEachRank(index, [&](uint32_t rank) { order[next[rank]++] = index; });
  }

  /// The instruction's own rank, and the others whose memory it accesses, each once.
  template <typename Visit> void forEachRank(uint32_t index, const Visit &visit) {
    uint32_t own = network.rankOf(index);
    visit(own);
    const Instruction &instruction = plan.instructions[index];
    if (instruction.opcode != Opcode::LoadReduceStore)
      return;
    accessed.clear();
    for (std::span<const Operand> operands :
         {plan.sourcesOf(instruction), plan.destinationsOf(instruction)})
      for (const Operand &operand : operands)
        if (operand.rank != own)
          accessed.push_back(operand.rank);
    std::sort(accessed.begin(), accessed.end());
    accessed.erase(std::unique(accessed.begin(), accessed.end()), accessed.end());
    std::for_each(accessed.begin(), accessed.end(), visit);
  }

  std::span<const uint32_t> orderOf(uint32_t rank) const {
    return std::span(order).subspan(firstOfRank[rank], firstOfRank[rank + 1] - firstOfRank[rank]);
  }

  Finding checkRank(uint32_t rank) {
    if (orderOf(rank).empty())
      return {};
    rankInCheck = rank;
    firstLocation = locations.begin(rank);
    histories.assign(locations.begin(rank + 1) - firstLocation, {});
    reads.clear();
    for (uint32_t index : orderOf(rank))
      forEachAccess(rank, index, true, [&](History &history) {
        history.isEverWritten = true;
        return Finding();
      });
    clocks.begin(rank);
    for (uint32_t index : orderOf(rank)) {
      bool isOwn = network.rankOf(index) == rank;
      if (isOwn)
        clocks.enter(index);
      Finding finding =
          forEachAccess(rank, index, false, [&](History &h) { return read(h, index); });
      if (!finding)
        finding = forEachAccess(rank, index, true, [&](History &h) { return write(h, index); });
      if (finding)
        return finding;
      if (isOwn)
        clocks.leave(index);
    }
    return {};
  }

  /// Calls `visit` with the history of each location that the instruction writes, or reads.
  template <typename Visit>
  Finding forEachAccess(uint32_t rank, uint32_t index, bool writes, const Visit &visit) {
    const Instruction &instruction = plan.instructions[index];
    for (const Operand &operand :
         writes ? plan.destinationsOf(instruction) : plan.sourcesOf(instruction)) {
      if (operand.kind == OperandKind::Connection || operand.rank != rank)
        continue;
      for (uint32_t chunk = operand.index; chunk < operand.index + instruction.count; ++chunk) {
        uint32_t location = locations.of(rank, operand.kind, chunk);
        Finding finding = visit(histories[location - firstLocation]);
        if (!finding)
          continue;
        finding->message = describeChunk(rank, operand.kind, chunk) + ": " + finding->message;
        return finding;
      }
    }
    return {};
  }

  Finding read(History &history, uint32_t index) {
    if (!history.isEverWritten)
      return {};
    if (history.lastWrite != kNone && !isOrdered(history.lastWrite, index))
      return race(history.lastWrite, "written", index, "read");
    bool isRepeated =
        history.firstRead != kNone &&
        network.blockOf[reads[history.firstRead].instruction] == network.blockOf[index];
    if (isRepeated) {
      reads[history.firstRead].instruction = index;
      return {};
    }
    reads.push_back({index, history.firstRead});
    history.firstRead = static_cast<uint32_t>(reads.size() - 1);
    return {};
  }

  Finding write(History &history, uint32_t index) {
    if (history.lastWrite != kNone && !isOrdered(history.lastWrite, index))
      return race(history.lastWrite, "written", index, "written");
    for (uint32_t i = history.firstRead; i != kNone; i = reads[i].next)
      if (!isOrdered(reads[i].instruction, index))
        return race(reads[i].instruction, "read", index, "written");
    history.lastWrite = index;
    history.firstRead = kNone;
    return {};
  }

  /// The clocks know of instructions of one rank only.
  bool isOrdered(uint32_t earlier, uint32_t later) {
    if (network.rankOf(earlier) == network.rankOf(later) && network.rankOf(later) == rankInCheck)
      return clocks.isOrdered(earlier, later);
    return network.blockOf[earlier] == network.blockOf[later] || search.leads(earlier, later);
  }

  Finding race(uint32_t first, const char *firstDoes, uint32_t second, const char *secondDoes) {
    VerifyError error = errorAt(plan, second, Proof::Race,
                                network.rankOf(first) == network.rankOf(second)
                                    ? "nothing orders two accesses: add a dependency between them"
                                    : "nothing orders two accesses: add a signal and a wait "
                                      "between them");
    error.mode = mode;
    error.witness = {std::string(firstDoes) + " by " + describe(plan, first),
                     std::string(secondDoes) + " by " + describe(plan, second)};
    return error;
  }

  const Plan &plan;
  const Network &network;
  AliasMode mode;
  Locations locations;
  PathSearch search;
  RankClocks clocks;
  std::vector<uint32_t> order, firstOfRank;
  std::vector<uint32_t> accessed; // by one instruction: other ranks
  uint32_t rankInCheck = 0;
  uint32_t firstLocation = 0; // of that rank
  std::vector<History> histories;
  std::vector<Read> reads;
};

} // namespace

Finding checkRaces(const Network &network, const Execution &execution, AliasMode mode) {
  return RaceChecker(network, execution, mode).run();
}

} // namespace occl::plan::verify
