#include "compiler/passes/DirectTransfers.h"

#include "compiler/analysis/Dependences.h"
#include "plan/limits.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

/// How a message gets to its receivers.
enum class Way : uint8_t { Connection, Load, Store };

/// Why a message stays one: what counts it.
using Reason = uint64_t KeptMessages::*;

struct Message {
  StepRef sender;
  llvm::SmallVector<StepRef, 2> receivers;
  Way way = Way::Connection;
  Reason reason = &KeptMessages::nowhere; // if it is not sent another way
};

/// An access of a range of chunks. The keys order accesses before and after the change: four a
/// step, for its reads, its writes, and reads of its result.
struct Access {
  uint32_t owner, space;
  int64_t begin, end;
  uint64_t oldKey, newKey;
  uint32_t rank; // that performs it
  bool isWrite;
  uint32_t message; // that moves it, or kFixed

  bool isOfSameMemory(const Access &other) const {
    return owner == other.owner && space == other.space;
  }
};

constexpr uint32_t kFixed = ~0u;
constexpr uint64_t kReads = 0, kWrites = 1, kReadsOfResult = 2;

bool isPlainSend(const Instruction &instruction) {
  return instruction.sources.size() == 1 && instruction.sources[0].isLocal() &&
         !instruction.localDestination();
}

bool isPlainReceive(const Instruction &instruction) {
  return instruction.sources.size() == 1 && !instruction.sources[0].isLocal() &&
         instruction.destinations.size() == 1 && instruction.localDestination();
}

/// Where the sender of a message has what it sends, or null.
const Place *valueOf(const Instruction &sender) {
  return isPlainSend(sender) ? &sender.sources[0] : sender.localDestination();
}

class Conversion {
public:
  /// `reasons` has, for each connection or only for the first ones, why its messages stay if nobody
  /// finds another reason.
  Conversion(Program &program, std::vector<StepRef> &order, const DirectOptions &options,
             llvm::ArrayRef<Reason> reasons)
      : program(program), order(order), options(options) {
    for (const Rank &rank : program.ranks)
      firstStep.push_back(firstStep.back() + static_cast<uint32_t>(rank.steps.size()));
    position.resize(firstStep.back());
    for (uint32_t i = 0; i < order.size(); ++i)
      position[flat(order[i])] = i;
    collectMessages();
    for (size_t c = 0; c < reasons.size(); ++c)
      for (uint32_t m = firstMessage[c]; m < firstMessage[c + 1]; ++m)
        messages[m].reason = reasons[c];
  }

  /// Why the first message that a connection still carries stays.
  Reason reasonOf(size_t connection) const {
    uint32_t message = firstMessage[connection];
    while (message + 1 < firstMessage[connection + 1] && messages[message].way != Way::Connection)
      ++message;
    return messages[message].reason;
  }

  /// Chooses the way of each message. False if none is direct.
  bool choose() {
    for (Message &message : messages)
      message.way = canStore(message) ? Way::Store : canLoad(message) ? Way::Load : Way::Connection;
    // Every round takes something back; a program that needs more of them is none for this pass.
    constexpr unsigned kRounds = 32;
    for (unsigned round = 0; round < kRounds && hasDirect(); ++round) {
      changed = false;
      checkAccesses();
      checkSteps();
      if (!changed)
        return hasDirect();
    }
    return false;
  }

  /// The connections that still carry messages, by index.
  std::vector<bool> usedConnections() const {
    std::vector<bool> isUsed(program.connections.size(), false);
    forEachStep([&](StepRef ref) {
      auto ways = waysOf(ref);
      size_t message = 0;
      for (const inst::Places *places : {&at(ref).sources, &at(ref).destinations})
        forEachMessage(*places, [&](const Place &place) {
          if (ways[message++] == Way::Connection)
            isUsed[place.index] = true;
        });
    });
    return isUsed;
  }

  /// Of the messages that some receiver could have loaded, or the sender stored.
  KeptMessages keptMessages() const {
    KeptMessages kept;
    for (const Message &message : messages) {
      uint32_t group = options.groups[message.sender.rank];
      if (llvm::none_of(message.receivers,
                        [&](StepRef ref) { return options.groups[ref.rank] == group; }))
        continue;
      ++kept.all;
      if (message.way != Way::Connection)
        continue;
      ++(kept.*message.reason);
      if (!kept.location)
        kept.location = program.ranks[message.sender.rank].steps[message.sender.step].location;
    }
    return kept;
  }

  /// Replaces program and order.
  void rewrite() {
    std::vector<Rank> ranks(program.ranks.size());
    std::vector<StepRef> newOrder;
    for (StepRef ref : order) {
      Rewritten result = rewrite(ref);
      std::vector<Step> &steps = ranks[ref.rank].steps;
      for (Instruction &instruction : result.instructions) {
        newOrder.push_back({ref.rank, static_cast<uint32_t>(steps.size())});
        Step &step = steps.emplace_back();
        step.instruction = std::move(instruction);
        step.location = program.ranks[ref.rank].steps[ref.step].location;
      }
      if (result.usesScratch)
        program.ranks[ref.rank].scratchChunks += at(ref).count;
    }
    std::vector<bool> isUsed = usedConnections();
    for (auto [rank, rewritten] : llvm::zip(program.ranks, ranks))
      rank.steps = std::move(rewritten.steps);
    order = std::move(newOrder);
    dropConnections(isUsed);
  }

private:
  uint32_t flat(StepRef ref) const { return firstStep[ref.rank] + ref.step; }
  const Instruction &at(StepRef ref) const {
    return program.ranks[ref.rank].steps[ref.step].instruction;
  }
  bool hasDirect() const {
    return llvm::any_of(messages, [](const Message &m) { return m.way != Way::Connection; });
  }

  /// Numbers the messages of all connections, and lists those of each step: as its sources have
  /// them, then as its destinations do.
  void collectMessages() {
    std::vector<uint32_t> &first = firstMessage;
    first.assign(program.connections.size() + 1, 0);
    forEachStep([&](StepRef ref) {
      forEachMessage(at(ref).destinations, [&](const Place &place) { ++first[place.index + 1]; });
    });
    for (size_t c = 0; c < program.connections.size(); ++c)
      first[c + 1] += first[c];
    messages.resize(first.back());
    messagesOf.resize(firstStep.back());
    std::vector<uint32_t> sent(program.connections.size(), 0);
    std::vector<std::vector<uint32_t>> received(program.connections.size(),
                                                std::vector<uint32_t>(program.ranks.size(), 0));
    forEachStep([&](StepRef ref) {
      auto note = [&](const Place &place, uint32_t number) {
        messagesOf[flat(ref)].push_back(first[place.index] + number);
        return &messages[first[place.index] + number];
      };
      forEachMessage(at(ref).sources, [&](const Place &place) {
        note(place, received[place.index][ref.rank]++)->receivers.push_back(ref);
      });
      forEachMessage(at(ref).destinations,
                     [&](const Place &place) { note(place, sent[place.index]++)->sender = ref; });
    });
  }

  template <typename Function> void forEachStep(Function fn) const {
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        fn(StepRef{r, i});
  }

  bool isOfOneGroup(const Message &message) const {
    return llvm::all_of(message.receivers, [&](StepRef receiver) {
      return options.groups[receiver.rank] == options.groups[message.sender.rank];
    });
  }
  bool canStore(const Message &message) const {
    return isOfOneGroup(message) &&
           llvm::all_of(message.receivers, [&](StepRef ref) { return isPlainReceive(at(ref)); });
  }
  bool canLoad(const Message &message) const {
    return isOfOneGroup(message) && valueOf(at(message.sender));
  }

  /// Takes back how a message goes, and tries the next way.
  void demote(uint32_t index, Reason reason) {
    Message &message = messages[index];
    if (message.way == Way::Connection)
      return;
    message.reason = reason;
    message.way = message.way == Way::Store && canLoad(message) ? Way::Load : Way::Connection;
    changed = true;
  }

  //===--- Accesses ---===//

  void addAccess(uint32_t owner, Place place, uint32_t count, Access access) {
    Range range = rangeOf(program, program.ranks[owner], place, count);
    access.owner = owner;
    access.space = range.space;
    access.begin = range.begin;
    access.end = range.end;
    accesses.push_back(access);
  }

  void addFixed(StepRef ref, Place place, bool isWrite) {
    uint64_t key = uint64_t{position[flat(ref)]} * 4 + (isWrite ? kWrites : kReads);
    addAccess(ref.rank, place, at(ref).count, {0, 0, 0, 0, key, key, ref.rank, isWrite, kFixed});
  }

  void addLoad(StepRef receiver, uint32_t index) {
    StepRef sender = messages[index].sender;
    uint64_t oldKey =
        uint64_t{position[flat(sender)]} * 4 + (isPlainSend(at(sender)) ? kReads : kReadsOfResult);
    addAccess(sender.rank, *valueOf(at(sender)), at(sender).count,
              {0, 0, 0, 0, oldKey, uint64_t{position[flat(receiver)]} * 4 + kReads, receiver.rank,
               false, index});
  }

  void addStore(StepRef receiver, uint32_t index) {
    StepRef sender = messages[index].sender;
    addAccess(receiver.rank, *at(receiver).localDestination(), at(receiver).count,
              {0, 0, 0, 0, uint64_t{position[flat(receiver)]} * 4 + kWrites,
               uint64_t{position[flat(sender)]} * 4 + kWrites, sender.rank, true, index});
  }

  void addAccesses(StepRef ref) {
    const Instruction &instruction = at(ref);
    auto ways = waysOf(ref);
    size_t message = 0;
    bool isGone =
        isPlainSend(instruction) && llvm::all_of(ways, [](Way way) { return way == Way::Load; });
    for (Place source : instruction.sources) {
      if (source.isLocal()) {
        if (!isGone)
          addFixed(ref, source, false);
        continue;
      }
      if (ways[message] == Way::Load)
        addLoad(ref, messagesOf[flat(ref)][message]);
      ++message;
    }
    const Place *destination = instruction.localDestination();
    if (destination && isPlainReceive(instruction) && ways[0] == Way::Store)
      addStore(ref, messagesOf[flat(ref)][0]);
    else if (destination)
      addFixed(ref, *destination, true);
  }

  llvm::SmallVector<Way, 4> waysOf(StepRef ref) const {
    llvm::SmallVector<Way, 4> ways;
    for (uint32_t message : messagesOf[flat(ref)])
      ways.push_back(messages[message].way);
    return ways;
  }

  void checkAccesses() {
    std::vector<bool> isSpoiltMessage(messages.size(), false);
    accesses.clear();
    forEachStep([&](StepRef ref) { addAccesses(ref); });
    llvm::sort(accesses, [](const Access &a, const Access &b) {
      return std::tuple(a.owner, a.space, a.begin, a.oldKey, a.newKey) <
             std::tuple(b.owner, b.space, b.begin, b.oldKey, b.newKey);
    });
    for (size_t begin = 0, end; begin < accesses.size(); begin = end) {
      // What overlaps one of them, however far that goes on.
      int64_t last = accesses[begin].end;
      bool isOneRange = true;
      for (end = begin + 1;
           end < accesses.size() && accesses[end].isOfSameMemory(accesses[begin]) &&
           accesses[end].begin < last;
           ++end) {
        isOneRange &= accesses[end].begin == accesses[begin].begin && accesses[end].end == last;
        last = std::max(last, accesses[end].end);
      }
      llvm::ArrayRef<Access> cluster = llvm::ArrayRef(accesses).slice(begin, end - begin);
      if (isOneRange)
        findSpoilt(cluster, isSpoiltMessage);
      else
        findSpoiltInPieces(cluster, isSpoiltMessage);
    }
    // Once, however many accesses say so: the next way has other accesses.
    for (uint32_t message = 0; message < messages.size(); ++message)
      if (isSpoiltMessage[message])
        demote(message, &KeptMessages::spoils);
  }

  /// Likewise where ranges overlap in part: piece by piece, cut where accesses begin or end.
  static void findSpoiltInPieces(llvm::ArrayRef<Access> cluster,
                                 std::vector<bool> &isSpoiltMessage) {
    std::vector<Access> open; // in their old order
    size_t next = 0;
    for (int64_t at = cluster.front().begin; next < cluster.size() || !open.empty();) {
      llvm::erase_if(open, [&](const Access &access) { return access.end <= at; });
      size_t numOld = open.size();
      for (; next < cluster.size() && cluster[next].begin == at; ++next)
        open.push_back(cluster[next]);
      std::inplace_merge(open.begin(), open.begin() + static_cast<ptrdiff_t>(numOld), open.end(),
                         [](const Access &a, const Access &b) {
                           return std::tuple(a.oldKey, a.newKey) < std::tuple(b.oldKey, b.newKey);
                         });
      findSpoilt(open, isSpoiltMessage);
      int64_t end = next < cluster.size() ? cluster[next].begin : INT64_MAX;
      for (const Access &access : open)
        end = std::min(end, access.end);
      at = end;
    }
  }

  /// Marks the messages that cannot stay as they are because of a piece of memory, given all
  /// accesses of it in their old order.
  static void findSpoilt(llvm::ArrayRef<Access> piece, std::vector<bool> &isSpoiltMessage) {
    auto check = [&](const Access &a, const Access &b) {
      if (isSpoilt(a, b))
        for (const Access *access : {&a, &b})
          if (access->message != kFixed)
            isSpoiltMessage[access->message] = true;
    };
    // Reads, of which there may be many, do not disturb each other.
    for (size_t write = 0; write < piece.size(); ++write) {
      if (!piece[write].isWrite)
        continue;
      for (size_t before = 0; before < write; ++before)
        check(piece[before], piece[write]);
      for (size_t after = write + 1; after < piece.size(); ++after)
        check(piece[write], piece[after]);
    }
  }

  static bool isSpoilt(const Access &a, const Access &b) {
    bool isMoved = a.message != kFixed || b.message != kFixed;
    if (!isMoved || (!a.isWrite && !b.isWrite))
      return false;
    return a.newKey >= b.newKey || (b.isWrite && a.rank != b.rank);
  }

  //===--- Steps ---===//

  /// What becomes of a step: nothing, one instruction, or up to three, since none may have both
  /// connections and peers' buffers. What they hand on lies in the step's own destination or in new
  /// scratch.
  struct Rewritten {
    llvm::SmallVector<Instruction, 3> instructions;
    bool usesScratch = false;
    bool isLegal = true;
  };

  /// A step's operands after the change, by where they are.
  struct Operands {
    llvm::SmallVector<inst::Places, 2>
        runs;                             // of the sources: in memory and from connections in turn
    inst::Places own, peers, connections; // of the destinations
    bool isGone = false, isDirect = false;
  };

  static Place peerPlace(Place place, uint32_t owner) {
    place.channel = static_cast<int16_t>(owner);
    return place;
  }

  Operands operandsOf(StepRef ref) const {
    Operands result;
    size_t next = 0;
    for (Place source : at(ref).sources) {
      const Message *message =
          source.isLocal() ? nullptr : &messages[messagesOf[flat(ref)][next++]];
      if (message && message->way == Way::Store) { // the sender does it all
        result.isGone = true;
        return result;
      }
      if (message && message->way == Way::Load)
        source = peerPlace(*valueOf(at(message->sender)), message->sender.rank);
      result.isDirect |= source.isPeer();
      if (result.runs.empty() || result.runs.back().back().isLocal() != source.isLocal())
        result.runs.emplace_back();
      result.runs.back().push_back(source);
    }
    for (Place destination : at(ref).destinations) {
      if (destination.isLocal()) {
        result.own.push_back(destination);
        continue;
      }
      const Message &message = messages[messagesOf[flat(ref)][next++]];
      if (message.way == Way::Connection)
        result.connections.push_back(destination);
      if (message.way != Way::Store)
        continue;
      for (StepRef receiver : message.receivers)
        result.peers.push_back(peerPlace(*at(receiver).localDestination(), receiver.rank));
    }
    result.isDirect |= !result.peers.empty();
    result.isGone = result.own.empty() && result.peers.empty() && result.connections.empty();
    return result;
  }

  Rewritten rewrite(StepRef ref) const {
    Rewritten result;
    Operands operands = operandsOf(ref);
    if (operands.isGone)
      return result;
    auto add = [&](inst::Places sources, const inst::Places &destinations) {
      Instruction &instruction = result.instructions.emplace_back(at(ref));
      instruction.sources = std::move(sources);
      instruction.destinations = destinations;
      instruction.final = false;
    };
    if (!operands.isDirect) {
      operands.own.append(operands.connections);
      add(at(ref).sources, operands.own);
      result.instructions.back().final = at(ref).final;
      return result;
    }
    split(ref, std::move(operands), result, add);
    for (const Instruction &instruction : result.instructions)
      result.isLegal &= isDisjoint(ref, instruction) &&
                        instruction.sources.size() + instruction.destinations.size() <=
                            plan::limits::kMaxOperands;
    return result;
  }

  /// Folds what is in memory and what arrives in instructions of their own, the second of them with
  /// the first one's result; stores and sends, likewise.
  template <typename Add>
  void split(StepRef ref, Operands operands, Rewritten &result, Add add) const {
    uint32_t free = program.ranks[ref.rank].scratchChunks;
    const Place scratch = {PlaceKind::Scratch, -1, free};
    // Two folds in place of one round 16-bit floats twice.
    bool keepsBits = operands.runs.size() == 1 || operands.runs.front().size() == 1;
    result.isLegal = operands.runs.size() <= 2 && (keepsBits || options.reassociate) &&
                     free + at(ref).count <= plan::limits::kMaxChunks;
    inst::Places last = operands.runs.back();
    if (operands.runs.size() == 2) {
      add(operands.runs.front(), {scratch});
      last.insert(last.begin(), scratch);
      result.usesScratch = true;
    }
    bool receives = !last.back().isLocal();
    inst::Places &apart = receives ? operands.peers : operands.connections;
    inst::Places together = operands.own;
    together.append(receives ? operands.connections : operands.peers);
    bool isCopy = last.size() == 1 && !receives && !last.front().isPeer();
    Place value = isCopy ? last.front() : operands.own.empty() ? scratch : operands.own.front();
    if (!apart.empty() && !isCopy && operands.own.empty()) {
      together.insert(together.begin(), scratch);
      result.usesScratch = true;
    }
    add(last, together);
    result.instructions.back().final = at(ref).final;
    if (!apart.empty())
      add({value}, apart);
  }

  /// Destinations are disjoint from each source, unless they are the same; from each other they are
  /// since accesses of one chunk keep their order.
  bool isDisjoint(StepRef ref, const Instruction &instruction) const {
    auto rangeOfPlace = [&](Place place) {
      uint32_t owner = place.owner(ref.rank);
      return std::pair(owner, rangeOf(program, program.ranks[owner], place, instruction.count));
    };
    for (const Place &destination : instruction.destinations) {
      auto [owner, range] = rangeOfPlace(destination);
      for (const Place &source : instruction.sources)
        if (auto [other, read] = rangeOfPlace(source);
            other == owner && read.overlaps(range) && !(read == range))
          return false;
    }
    return true;
  }

  void checkSteps() {
    forEachStep([&](StepRef ref) {
      if (rewrite(ref).isLegal)
        return;
      for (uint32_t message : messagesOf[flat(ref)])
        demote(message, &KeptMessages::mixes);
    });
  }

  void dropConnections(const std::vector<bool> &isUsed) {
    std::vector<uint32_t> newIndex(isUsed.size());
    std::vector<inst::Connection> kept;
    for (size_t c = 0; c < isUsed.size(); ++c) {
      newIndex[c] = static_cast<uint32_t>(kept.size());
      if (isUsed[c])
        kept.push_back(program.connections[c]);
    }
    program.connections = std::move(kept);
    for (Rank &rank : program.ranks)
      for (Step &step : rank.steps)
        for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
          forEachMessage(*places, [&](Place &place) { place.index = newIndex[place.index]; });
  }

  Program &program;
  std::vector<StepRef> &order;
  const DirectOptions &options;
  std::vector<uint32_t> firstStep = {0}; // of each rank
  std::vector<uint32_t> position;        // of each step in the order
  std::vector<Message> messages;
  std::vector<uint32_t> firstMessage;                     // of each connection, and the end
  std::vector<llvm::SmallVector<uint32_t, 2>> messagesOf; // of each step
  std::vector<Access> accesses;
  bool changed = false;
};

/// Gives the members of the sender's group connections of their own where others hear the same,
/// except for the connections that are to stay whole. Returns, for each new connection, which one
/// it is of.
std::vector<uint32_t> splitByGroups(Program &program, llvm::ArrayRef<uint32_t> groups,
                                    const std::vector<bool> &staysWhole) {
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> partOf, newOf(program.connections.size(), kNone);
  for (uint32_t c = 0; c < newOf.size(); ++c) {
    inst::Connection near = program.connections[c];
    inst::Connection &far = program.connections[c]; // until the next one is appended
    auto isFar = [&](uint32_t rank) { return groups[rank] != groups[far.source]; };
    llvm::erase_if(near.destinations, isFar);
    if (staysWhole[c] || near.destinations.empty() ||
        near.destinations.size() == far.destinations.size())
      continue;
    llvm::erase_if(far.destinations, [&](uint32_t rank) { return !isFar(rank); });
    newOf[c] = static_cast<uint32_t>(program.connections.size());
    partOf.push_back(c);
    program.connections.push_back(std::move(near));
  }
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (Step &step : program.ranks[r].steps) {
      Instruction &instruction = step.instruction;
      forEachMessage(instruction.sources, [&](Place &place) {
        bool isNear = groups[r] == groups[program.connections[place.index].source];
        if (newOf[place.index] != kNone && isNear)
          place.index = newOf[place.index];
      });
      inst::Places more;
      forEachMessage(instruction.destinations, [&](const Place &place) {
        if (newOf[place.index] != kNone)
          more.push_back({PlaceKind::Connection, -1, newOf[place.index]});
      });
      instruction.destinations.append(more);
    }
  return partOf;
}

} // namespace

bool useDirectTransfers(Program &program, std::vector<StepRef> &order, const DirectOptions &options,
                        KeptMessages *kept) {
  size_t numConnections = program.connections.size();
  std::vector<bool> staysWhole(numConnections, false);
  std::vector<Reason> reasons(numConnections, &KeptMessages::nowhere);
  // What was split for nothing is put together again: the first round finds nearly all of it.
  constexpr unsigned kRounds = 4;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (round + 1 == kRounds)
      staysWhole.assign(numConnections, true);
    Program candidate = program;
    std::vector<uint32_t> partOf = splitByGroups(candidate, options.groups, staysWhole);
    Conversion conversion(candidate, order, options, reasons);
    bool hasDirect = conversion.choose();
    std::vector<bool> isUsed = conversion.usedConnections();
    bool isSplitForNothing = false;
    for (auto [i, connection] : llvm::enumerate(partOf))
      if (isUsed[numConnections + i]) {
        isSplitForNothing = staysWhole[connection] = true;
        reasons[connection] = conversion.reasonOf(numConnections + i);
      }
    if (isSplitForNothing)
      continue;
    if (kept)
      *kept = conversion.keptMessages();
    if (!hasDirect)
      return false;
    conversion.rewrite();
    program = std::move(candidate);
    return true;
  }
  return false;
}

} // namespace occl::passes
