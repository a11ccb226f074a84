#include "plan/verify/checks/races.h"

#include "plan/verify/checks/happens_before.h"

#include <algorithm>

namespace occl::plan::verify {

namespace {

class RaceChecker {
public:
  RaceChecker(const Network &network, const Execution &execution, const KnownOrders &known,
              AliasMode mode)
      : plan(network.plan), network(network), mode(mode), locations(plan, mode),
        search(network, execution), clocks(network, known, search) {
    groupByRank(execution);
  }

  Finding run() {
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
      if (Finding finding = checkRank(rank))
        return finding;
    return {};
  }

  uint64_t numSearches() const { return search.numSearches(); }

private:
  /// What an instruction does to a location: it is the instruction's chunk number `chunk`.
  struct Access {
    uint32_t instruction = kNone;
    uint32_t chunk = 0;
  };
  /// What happened to a location so far.
  struct History {
    Access lastWrite;
    uint32_t firstRead = kNone; // since the last write, in `reads`
    bool isEverWritten = false;
  };
  struct Read {
    Access access;
    uint32_t next; // in `reads`
  };

  /// The order of execution, rank by rank: its own instructions, and those that access its memory.
  void groupByRank(const Execution &execution) {
    // A counting sort: sizes, offsets, then each index to its place. It keeps the execution's order
    // within each rank, on which the clocks rely.
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
    // Others access the own rank alone.
    if (instruction.opcode != Opcode::LoadReduceStore)
      return;
    // Each rank once, however many operands it has, or its accesses would be checked several times.
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
    // First who writes at all: what is never written cannot race, and its reads need not be
    // remembered. Inputs of most plans are such.
    reads.clear();
    for (uint32_t index : orderOf(rank))
      forEachAccess(rank, index, true, [&](History &history, const Access &) {
        history.isEverWritten = true;
        return Finding();
      });
    // Then in the order of one execution. If all pairs of accesses, one of them a write, are
    // ordered, every execution has the same results, so that this one stands for all.
    clocks.begin(rank);
    for (uint32_t index : orderOf(rank)) {
      // The clocks count the rank's own thread blocks; others' instructions are asked about by the
      // search.
      bool isOwn = network.rankOf(index) == rank;
      if (isOwn)
        clocks.enter(index);
      // Reads before writes: an instruction may read what it overwrites, slice by slice.
      Finding finding =
          forEachAccess(rank, index, false, [&](History &h, Access a) { return read(h, a); });
      if (!finding)
        finding =
            forEachAccess(rank, index, true, [&](History &h, Access a) { return write(h, a); });
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
      // Every access belongs to the rank that owns the memory, whoever executes it.
      if (operand.kind == OperandKind::Connection || operand.rank != rank)
        continue;
      for (uint32_t chunk = 0; chunk < instruction.count; ++chunk) {
        uint32_t location = locations.of(rank, operand.kind, operand.index + chunk);
        // In place, a copy of a chunk onto itself writes what is there already.
        if (writes && copiesOntoItself(instruction, rank, chunk, location))
          continue;
        Finding finding = visit(histories[location - firstLocation], Access{index, chunk});
        if (!finding)
          continue;
        // The name of the chunk is made only now: the texts of millions of accesses would take
        // longer than their proofs.
        finding->message =
            describeChunk(rank, operand.kind, operand.index + chunk) + ": " + finding->message;
        return finding;
      }
    }
    return {};
  }

  /// In place a copy may be of a chunk onto itself; that only reads.
  bool copiesOntoItself(const Instruction &instruction, uint32_t rank, uint32_t chunk,
                        uint32_t destination) const {
    if (instruction.opcode != Opcode::Copy)
      return false;
    const Operand &source = plan.sourcesOf(instruction)[0];
    return locations.of(rank, source.kind, source.index + chunk) == destination;
  }

  Finding read(History &history, const Access &access) {
    if (!history.isEverWritten)
      return {};
    if (!isOrdered(history.lastWrite, access))
      return race(history.lastWrite, "written", access, "read");
    // Where a later read stands for an earlier one (same thread block), the list stays as short as
    // the number of blocks that read.
    if (history.firstRead != kNone && replaces(access, reads[history.firstRead].access)) {
      reads[history.firstRead].access = access;
      return {};
    }
    reads.push_back({access, history.firstRead});
    history.firstRead = static_cast<uint32_t>(reads.size() - 1);
    return {};
  }

  Finding write(History &history, const Access &access) {
    if (!isOrdered(history.lastWrite, access))
      return race(history.lastWrite, "written", access, "written");
    // Every read since the last write, for reads are not ordered among each other. After this write
    // they are history: whatever is ordered behind the write is behind them.
    for (uint32_t i = history.firstRead; i != kNone; i = reads[i].next)
      if (!isOrdered(reads[i].access, access))
        return race(reads[i].access, "read", access, "written");
    history.lastWrite = access;
    history.firstRead = kNone;
    return {};
  }

  /// Whether what comes after `next` comes after `last` as well.
  bool replaces(const Access &next, const Access &last) const {
    if (next.instruction == last.instruction)
      return next.chunk >= last.chunk;
    return network.blockOf[next.instruction] == network.blockOf[last.instruction];
  }

  /// Instructions in step with each other take a message's chunks in order. The clocks know of
  /// instructions of one rank only.
  bool isOrdered(const Access &earlier, const Access &later) {
    uint32_t from = earlier.instruction, to = later.instruction;
    if (from == kNone || network.blockOf[from] == network.blockOf[to])
      // A thread block executes in order, and nothing precedes the entry.
      return true;
    bool inStep = earlier.chunk <= later.chunk;
    if (network.rankOf(from) == rankInCheck && network.rankOf(to) == rankInCheck)
      return clocks.isOrdered(from, to, inStep);
    return search.leads(from, to, inStep);
  }

  std::string remedy(const Access &first, const Access &second) const {
    if (network.rankOf(first.instruction) != network.rankOf(second.instruction))
      return "add a signal and a wait between them";
    Place place = placeOf(plan, first.instruction);
    return "let it wait for thread block " + std::to_string(place.threadBlock) + ", instruction " +
           std::to_string(place.instruction);
  }

  Finding race(const Access &first, const char *firstDoes, const Access &second,
               const char *secondDoes) {
    VerifyError error = errorAt(plan, second.instruction, Code::Race,
                                "nothing orders two accesses: " + remedy(first, second));
    error.mode = mode;
    error.witness = {noteAt(plan, first.instruction, std::string(firstDoes) + " by "),
                     noteAt(plan, second.instruction, std::string(secondDoes) + " by ")};
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

Finding checkRaces(const Network &network, const Execution &execution, const KnownOrders &known,
                   AliasMode mode, uint64_t &searches) {
  RaceChecker checker(network, execution, known, mode);
  Finding finding = checker.run();
  searches += checker.numSearches();
  return finding;
}

} // namespace occl::plan::verify
