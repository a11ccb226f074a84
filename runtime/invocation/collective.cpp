// Shapes: what a bound plan accesses, which ranks read its records, and how it may run.
#include "runtime/invocation/collective.h"

#include "plan/collectives/collectives.h"
#include "plan/model/chunking_of.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/invocation/plan_scaling.h"
#include "runtime/net/crossing.h"
#include "support/mix.h"

#include <algorithm>
#include <span>
#include <utility>

namespace occl::daemon {

namespace {

/// Smaller slices cost less to copy twice than to look up and acknowledge.
constexpr uint64_t kReferenceBytes = 16 << 10;

/// A message of a KiB in lines is one slice: such ones are done several at a time.
constexpr uint32_t kLineSliceBytes = 1 << 10;

/// What takes less time than to wake a thread for it.
constexpr uint64_t kBytesAtOnce = 4 << 10;

std::vector<uint32_t> listOf(const std::vector<bool> &isListed) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < isListed.size(); ++r)
    if (isListed[r])
      ranks.push_back(r);
  return ranks;
}

/// The API's value: 0 for what is none of the standard collectives.
uint32_t kindOf(const plan::Plan &plan) {
  const auto collective = plan::collectiveOfName(plan.collective);
  return collective ? static_cast<uint32_t>(*collective) + 1 : 0;
}

/// Calls visit(accessor, operand, isStored) for each operand of an instruction that lies with
/// another rank.
template <typename Visit> void forEachDirectAccess(const plan::Plan &plan, Visit visit) {
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &instruction : plan.instructionsOf(block)) {
        if (instruction.opcode != plan::Opcode::LoadReduceStore)
          continue;
        for (bool isStored : {false, true})
          for (const plan::Operand &operand :
               isStored ? plan.destinationsOf(instruction) : plan.sourcesOf(instruction))
            if (operand.rank != r)
              visit(r, operand, isStored);
      }
}

/// Between processes memory of others can be read whatever becomes of it, and who has read it finds
/// out whether that was still what it should be: only who stores is waited for after a failure.
DirectAccess directAccessOf(const plan::Plan &plan, const BindPlace &place) {
  DirectAccess found;
  std::vector<bool> accesses(plan.numRanks, false), awaited = accesses, storesTo = accesses;
  // Accesses of all ranks are looked at, as this one has to know who accesses its buffers.
  forEachDirectAccess(plan, [&](uint32_t accessor, const plan::Operand &operand, bool isStored) {
    found.exists = true;
    found.reachesScratch |= operand.kind == plan::OperandKind::Scratch;
    if (accessor == place.rank) {
      found.byThisRank = true;
      storesTo[operand.rank] = storesTo[operand.rank] || isStored;
    }
    if (operand.rank == place.rank) {
      accesses[accessor] = true;
      awaited[accessor] = awaited[accessor] || isStored || !place.acrossProcesses;
    }
  });
  found.accessors = listOf(accesses);
  found.awaited = listOf(awaited);
  found.storedTo = listOf(storesTo);
  return found;
}

/// needs[r][q]: rank r ends no invocation without one of rank q, directly or by way of others.
/// Nothing moves where there are no elements.
std::vector<std::vector<bool>> needsOf(const plan::Plan &plan, uint64_t count) {
  const uint32_t n = plan.numRanks;
  std::vector<std::vector<bool>> needs(n, std::vector<bool>(n, false));
  if (count == 0)
    return needs;
  // Directly: a receiver needs the source, an access the rank of the buffer.
  for (uint32_t r = 0; r < n; ++r)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &instruction : plan.instructionsOf(block))
        for (const plan::Operand &source : plan.sourcesOf(instruction))
          if (source.kind == plan::OperandKind::Connection)
            needs[r][plan.connections[source.index].source] = true;
  forEachDirectAccess(plan, [&](uint32_t accessor, const plan::Operand &operand, bool) {
    needs[accessor][operand.rank] = true;
  });
  // Then by way of others: the transitive closure.
  for (uint32_t by = 0; by < n; ++by)
    for (uint32_t r = 0; r < n; ++r)
      for (uint32_t q = 0; needs[r][by] && q < n; ++q)
        needs[r][q] = needs[r][q] || needs[by][q];
  return needs;
}

void findCompared(Collective &collective, const plan::Plan &plan, uint32_t rank, uint64_t count) {
  const auto needs = needsOf(plan, count);
  const uint32_t n = plan.numRanks;
  std::vector<bool> compares(n, false), reads(n, false);
  // Two neighbours are enough: all ranks are compared over one another.
  for (uint32_t neighbour : {(rank + 1) % n, (rank + n - 1) % n}) {
    if (neighbour == rank)
      continue;
    compares[neighbour] = !needs[rank][neighbour];
    reads[neighbour] = !needs[neighbour][rank];
  }
  // Readers of the arena block look at the record anyway.
  for (uint32_t reader : collective.readers)
    reads[reader] = true;
  collective.compared = listOf(compares);
  collective.recordReaders = std::make_shared<const std::vector<uint32_t>>(listOf(reads));
}

/// The destinations of this rank's sends, and its accessors.
std::vector<uint32_t> readersOf(const plan::Plan &plan, uint32_t rank,
                                const std::vector<uint32_t> &accessors) {
  std::vector<bool> reads(plan.numRanks, false);
  for (uint32_t accessor : accessors)
    reads[accessor] = true;
  for (const plan::Connection &connection : plan.connections)
    if (connection.source == rank)
      for (uint32_t destination : plan.destinationsOf(connection))
        reads[destination] = true;
  return listOf(reads);
}

void countBytes(Collective &collective) {
  for (uint32_t b = 0; b < collective.binding->program().numBlocks; ++b) {
    const BlockBytes &bytes =
        collective.bytesOfBlocks.emplace_back(bytesOf(collective.binding->program(), b));
    collective.bytesSent += bytes.sent;
    collective.bytesReceived += bytes.received;
  }
}

/// Whom the first step of a thread block rings whenever it is executed; ascending.
std::vector<uint32_t> rungByFirstStep(const interpreter::Program &program, uint32_t block) {
  std::vector<bool> areRung(program.numRanks, false);
  const interpreter::BoundBlock &bound = program.blocks[block];
  if (bound.numInstructions != 0) {
    const auto &step = program.instructions[bound.firstInstruction];
    for (const auto &release : std::span(program.releases + step.firstRelease, step.numReleases))
      for (uint32_t p = 0; release.limit == ~0ull && p < release.numPeers; ++p)
        areRung[program.peers[release.firstPeer + p]] = true;
  }
  return listOf(areRung);
}

void findAccessed(Collective &collective, const plan::Plan &plan, uint64_t count, DataType type) {
  const auto chunking = plan::chunkingOf(plan, count, sizeOf(type));
  for (uint32_t r : collective.binding->directRanks()) {
    const plan::RankPlan &peer = plan.ranks[r];
    collective.accessedBytes.resize(plan.numRanks);
    collective.accessedBytes[r] = {chunking.beginInBuffer(peer.inputChunks) * sizeOf(type),
                                   chunking.beginInBuffer(peer.outputChunks) * sizeOf(type), 0};
  }
}

/// Over everything that ranks must agree on.
uint64_t hashOf(const transport::CollectiveTraits &traits) {
  uint64_t hash = 0;
  for (uint64_t word : {traits.planHash, traits.count, uint64_t{traits.dataType},
                        uint64_t{traits.op}, uint64_t{traits.kind}, uint64_t{traits.root}})
    hash = support::mix(hash + support::mix(word ^ 0x9e3779b97f4a7c15));
  return hash;
}

} // namespace

BlockBytes bytesOf(const interpreter::Program &program, uint32_t block) {
  const interpreter::BoundBlock &bound = program.blocks[block];
  BlockBytes moved;
  for (uint32_t i = 0; i < bound.numInstructions; ++i) {
    const auto &instruction = program.instructions[bound.firstInstruction + i];
    uint64_t bytes = instruction.elements * program.elementBytes;
    // Sources are in front of destinations.
    for (uint32_t o = 0; o < uint32_t{instruction.numSources} + instruction.numDestinations; ++o) {
      const auto &operand = program.operands[instruction.firstOperand + o];
      bool isMessage = operand.kind == plan::OperandKind::Connection;
      // Operands of this rank's own buffers move nothing between ranks.
      if (!isMessage && operand.rank == program.rank)
        continue;
      if (o < instruction.numSources)
        moved.received += bytes;
      else
        // A message to several ranks is sent to each of them.
        moved.sent += bytes * (isMessage ? program.ends[operand.end].numPeers : 1);
    }
  }
  return moved;
}

std::string nameOfKind(uint32_t kind) {
  return kind - 1 < plan::kNumStandardCollectives ? plan::kStandardCollectives[kind - 1].name
                                                  : "a plan of its own";
}

/// The rounds are in its lowest bits, so that who reads another rank's record can name them.
uint64_t hashInRounds(uint64_t planHash, uint32_t rounds) {
  return (support::mix(planHash) & ~kRoundsMask) | rounds;
}

std::string describe(const transport::CollectiveTraits &traits, bool isPartitioned) {
  auto nameIn = [](auto code, unsigned numCodes, auto kind) {
    return code < numCodes ? std::string(nameOf(static_cast<decltype(kind)>(code))) : "unknown";
  };
  char hash[17];
  const uint64_t ofPlan = isPartitioned ? traits.planHash & ~kRoundsMask : traits.planHash;
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(ofPlan));
  constexpr uint32_t kFirstWithRoot = 4; // broadcast; all-to-all and all before have none
  const bool hasRoot = traits.kind >= kFirstWithRoot && traits.kind != 6;
  return nameOfKind(traits.kind) + ", count " + std::to_string(traits.count) + ", type " +
         nameIn(traits.dataType, kNumDataTypes, DataType{}) + ", operation " +
         nameIn(traits.op, kNumReduceOps, ReduceOp{}) +
         (hasRoot ? ", root " + std::to_string(traits.root) : "") + ", plan " + hash +
         (isPartitioned ? ", rounds " + std::to_string(roundsOf(traits.planHash)) : "");
}

std::string describe(uint64_t sequence, const std::string &name) {
  if (const auto number = transport::partitionedCollectiveOf(sequence))
    return "'" + name + "' (partitioned, request " + std::to_string(*number) + ")";
  return "'" + name + "'" +
         (sequence == kCallSequence ? "" : " (id " + std::to_string(sequence) + ")");
}

std::string IdState::describe() const {
  return daemon::describe(id, name.empty() ? plan->name : name);
}

std::string Collective::describe(uint64_t sequence, const std::string &name) const {
  return daemon::describe(sequence, name.empty() ? spec.plan->name : name);
}

uint32_t Collective::neediestRank() const {
  uint32_t neediest = 0;
  for (uint32_t r = 1; r < spec.plan->numRanks; ++r)
    if (binding->arenaBytes(r) > binding->arenaBytes(neediest))
      neediest = r;
  return neediest;
}

uint64_t Collective::flagBase(uint64_t sequence, uint64_t ordinal) const {
  return mayUseRing ? (flagTag + support::mix(~sequence) + ordinal) << kSliceBits : 0;
}

StatusOr<std::unique_ptr<Collective>> makeCollective(CollectiveSpec spec, const BindPlace &place) {
  const uint32_t rank = place.rank;
  interpreter::BindRequest request = {
      .rank = rank, .count = spec.count, .type = spec.type, .op = spec.op};
  // An average of floats is a sum if its inputs are divided before.
  const bool isDividedBefore = dividesInputs(*spec.plan, spec.op, spec.type);
  if (isDividedBefore)
    request.op = ReduceOp::Sum;
  // Between machines protocol Simple is used, and nothing is read by reference.
  const bool isCrossing = !place.isRemote.empty();
  request.isSimple = isCrossing;
  request.referenceBytes = place.acrossProcesses && !isCrossing ? kReferenceBytes : 0;
  request.headsDistance = place.headsDistance;
  request.hostSteps = true;
  request.onlyWideLines = true;
  request.lines.sliceBytes = kLineSliceBytes;
  auto binding = interpreter::bind(*spec.plan, request);
  if (!binding.ok())
    return binding.status();
  // The traits, by which ranks compare their calls.
  auto collective = std::make_unique<Collective>();
  collective->binding = *binding;
  collective->inputDivisor = isDividedBefore ? spec.plan->numRanks : 1;
  collective->mayHaveFactor = mayHaveFactor(*spec.plan);
  // Where nothing is reduced the operation makes no difference.
  uint32_t op = reduces(*spec.plan) ? static_cast<uint32_t>(spec.op) : 0;
  collective->traits = {spec.planHash, spec.count, static_cast<uint32_t>(spec.type), op};
  collective->traits.kind = kindOf(*spec.plan);
  collective->traits.root = spec.plan->root;
  // For this rank: its accesses, its readers, and the neighbours to compare with.
  collective->direct = directAccessOf(*spec.plan, place);
  collective->readers = readersOf(*spec.plan, rank, collective->direct.accessors);
  findAccessed(*collective, *spec.plan, spec.count, spec.type);
  findCompared(*collective, *spec.plan, rank, spec.count);
  // Between machines every rank looks at every record.
  if (isCrossing) {
    std::vector<bool> others(spec.plan->numRanks, true);
    others[rank] = false;
    collective->recordReaders = std::make_shared<const std::vector<uint32_t>>(listOf(others));
    collective->crossing =
        std::make_shared<net::Crossing>(*binding, place.isRemote, place.headsDistance);
  }
  collective->aliasing = plan::Aliasing(*spec.plan, rank, spec.count, sizeOf(spec.type));
  // Blocks in pre-posted rings are used again without being cleared, which only lines allow.
  const interpreter::Program &program = collective->binding->program();
  collective->mayUseRing =
      collective->binding->hasOnlyLines() && program.line.bytes != interpreter::kWordLineBytes &&
      !collective->direct.exists && program.flagsPerInvocation <= 1u << Collective::kSliceBits;
  collective->flagTag = hashOf(collective->traits);
  // The data ring all readers then, so the announcement need not.
  collective->firstStepRingsReaders =
      program.numBlocks == 1 && rungByFirstStep(program, 0) == collective->readers;
  collective->spec = std::move(spec);
  countBytes(*collective);
  collective->beginsAtOnce = collective->bytesSent + collective->bytesReceived <= kBytesAtOnce;
  return collective;
}

} // namespace occl::daemon
