#include "runtime/daemon/collective.h"

#include "plan/chunking_of.h"
#include "runtime/daemon/lane.h"

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

bool reduces(const plan::Plan &plan) {
  return std::any_of(
      plan.instructions.begin(), plan.instructions.end(),
      [](const plan::Instruction &instruction) { return instruction.numSources > 1; });
}

std::vector<uint32_t> listOf(const std::vector<bool> &isListed) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < isListed.size(); ++r)
    if (isListed[r])
      ranks.push_back(r);
  return ranks;
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
    BlockBytes bytes = bytesOf(collective, b);
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

} // namespace

BlockBytes bytesOf(const Collective &collective, uint32_t block) {
  const interpreter::Program &program = collective.binding->program();
  const interpreter::BoundBlock &bound = program.blocks[block];
  BlockBytes moved;
  for (uint32_t i = 0; i < bound.numInstructions; ++i) {
    const auto &instruction = program.instructions[bound.firstInstruction + i];
    uint64_t bytes = instruction.elements * program.elementBytes;
    for (uint32_t o = 0; o < uint32_t{instruction.numSources} + instruction.numDestinations; ++o) {
      const auto &operand = program.operands[instruction.firstOperand + o];
      bool isMessage = operand.kind == plan::OperandKind::Connection;
      if (!isMessage && operand.rank == program.rank)
        continue;
      if (o < instruction.numSources)
        moved.received += bytes;
      else
        moved.sent += bytes * (isMessage ? program.ends[operand.end].numPeers : 1);
    }
  }
  return moved;
}

IdState::IdState(uint64_t id, uint32_t numRanks) : id(id), peerCells(numRanks), leases(numRanks) {}
IdState::~IdState() = default;

std::string Collective::describe() const {
  return "'" + (spec.name.empty() ? spec.plan->name : spec.name) + "' (id " +
         std::to_string(spec.id) + ")";
}

std::array<uint64_t, 3> Collective::accessedBytes(uint32_t r) const {
  const plan::RankPlan &peer = spec.plan->ranks[r];
  const uint64_t elementBytes = sizeOf(spec.type);
  const auto chunking = plan::chunkingOf(*spec.plan, spec.count, elementBytes);
  return {chunking.beginInBuffer(peer.inputChunks) * elementBytes,
          chunking.beginInBuffer(peer.outputChunks) * elementBytes, 0};
}

StatusOr<std::unique_ptr<Collective>> makeCollective(CollectiveSpec spec, const BindPlace &place) {
  const uint32_t rank = place.rank;
  interpreter::BindRequest request = {
      .rank = rank, .count = spec.count, .type = spec.type, .op = spec.op};
  request.referenceBytes = place.acrossProcesses ? kReferenceBytes : 0;
  request.headsDistance = place.headsDistance;
  request.hostLineSteps = true;
  request.lines.sliceBytes = kLineSliceBytes;
  auto binding = interpreter::bind(*spec.plan, request);
  if (!binding.ok())
    return binding.status();
  auto collective = std::make_unique<Collective>();
  collective->binding = *binding;
  uint32_t op = reduces(*spec.plan) ? static_cast<uint32_t>(spec.op) : 0;
  collective->traits = {spec.planHash, spec.count, static_cast<uint32_t>(spec.type), op};
  collective->direct = directAccessOf(*spec.plan, place);
  collective->readers = readersOf(*spec.plan, rank, collective->direct.accessors);
  collective->aliasing = plan::Aliasing(*spec.plan, rank, spec.count, sizeOf(spec.type));
  collective->mayBeResident = collective->binding->hasOnlyLines() && !collective->direct.exists;
  const interpreter::Program &program = collective->binding->program();
  collective->firstStepRingsReaders =
      program.numBlocks == 1 && rungByFirstStep(program, 0) == collective->readers;
  if (collective->mayBeResident)
    collective->flat = interpreter::FlatLines::make(program);
  collective->spec = std::move(spec);
  countBytes(*collective);
  collective->beginsAtOnce = collective->bytesSent + collective->bytesReceived <= kBytesAtOnce;
  return collective;
}

} // namespace occl::daemon
