// An invocation's workspace, the binding of its peers' blocks, and how it is described.
#include "runtime/invocation/open_invocation.h"

#include "runtime/control/records/pair_id.h"

#include "runtime/base/cache_line.h"
#include "runtime/memory/arena.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace occl::daemon {

namespace {

/// Offsets in a workspace: places | progress words | tasks | scratch.
struct WorkspaceLayout {
  WorkspaceLayout(const Collective &collective, uint32_t numRanks) {
    const interpreter::Binding &binding = *collective.binding;
    uint32_t places = interpreter::numPlaces(numRanks, !binding.directRanks().empty());
    progress = alignUp(places * sizeof(char *), kCacheLine);
    tasks = progress + alignUp(binding.progressBytes(), kCacheLine);
    scratch = tasks + alignUp(binding.program().numBlocks * sizeof(BlockTask), kCacheLine);
    total = scratch + binding.scratchBytes();
  }

  uint64_t progress, tasks, scratch, total;
};

bool isPartitioned(const OpenInvocation &invocation) {
  return transport::partitionedCollectiveOf(invocation.id->id).has_value();
}

char *charsAt(std::byte *base, uint64_t offset) { return reinterpret_cast<char *>(base + offset); }

} // namespace

Status disagreement(const std::string &call, uint32_t rank, const transport::CollectiveTraits &mine,
                    uint32_t peer, const transport::CollectiveTraits &theirs, bool isPartitioned) {
  return {StatusCode::Mismatch, "collective " + call + ": ranks disagree: rank " +
                                    std::to_string(rank) + " has " + describe(mine, isPartitioned) +
                                    "; rank " + std::to_string(peer) + " has " +
                                    describe(theirs, isPartitioned)};
}

std::string OpenInvocation::describe() const {
  return collective->describe(id->id, name) +
         (id->id == kCallSequence ? ", call " + std::to_string(ordinal)
                                  : ", " + transport::describeInvocation(id->id, ordinal));
}

std::string OpenInvocation::subject() const {
  return operation ? operation->subject(ordinal) : "collective " + describe();
}

void BlockTask::renew(OpenInvocation &ofInvocation) {
  group = reinterpret_cast<uintptr_t>(&ofInvocation);
  standing = {};
  movedLast = false;
  invocation = &ofInvocation;
  context = {};
  obstacle = {};
  instruction = 0;
  wait = {};
  lookedAt = {};
  lookedIn = claimedIn = 0;
  meter = insight::BlockMeter(&ofInvocation.id->counters.block(block));
}

uint64_t workspaceBytes(const Collective &collective, uint32_t numRanks) {
  return WorkspaceLayout(collective, numRanks).total;
}

const transport::AnnounceCell *peerCell(IdState &id, const Fabric &fabric, uint32_t r) {
  const transport::AnnounceCell *cell = id.peerCells[r].load(std::memory_order_relaxed);
  if (!cell) {
    cell = fabric.of(r).announceTable().find(id.id);
    id.peerCells[r].store(cell, std::memory_order_relaxed);
  }
  return cell;
}

namespace {

/// The record of the invocation in rank r's segment, or nullptr if r has not announced it. A rank
/// whose buffers are accessed must have begun it, too.
const transport::AnnounceRecord *recordOf(OpenInvocation &invocation, const Fabric &fabric,
                                          uint32_t r) {
  const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, r);
  if (!cell || (invocation.collective->accesses(r) &&
                cell->begun.load(std::memory_order_acquire) <= invocation.ordinal))
    return nullptr;
  return cell->find(invocation.ordinal);
}

/// Other executors may be doing the same. False if a buffer is not where this rank could access all
/// of it.
bool bindBuffers(OpenInvocation &invocation, const Fabric &fabric, uint32_t r,
                 const transport::BufferAddresses &buffers) {
  const std::array<uint64_t, 3> &bytes = *invocation.collective->accessedBytes[r];
  for (size_t kind = 0; kind < buffers.size(); ++kind) {
    uint64_t where = buffers[kind];
    char *address = reinterpret_cast<char *>(where);
    // A reference of another process is used only if it lies in the mapped heap.
    if (!fabric.sharesAddresses() && (where != 0 || bytes[kind] != 0)) {
      address = fabric.peerMemory()[r].at(where, bytes[kind]);
      if (!(where & interpreter::kMappedReference) || !address)
        return false;
    }
    auto place = interpreter::peerBufferPlace(fabric.numRanks(), r, static_cast<uint32_t>(kind));
    // Executors that do the same store the same address.
    storeShared(&invocation.view.places[place], address, std::memory_order_relaxed);
  }
  return true;
}

Status bindPeer(OpenInvocation &invocation, const Fabric &fabric, uint32_t r,
                const transport::AnnounceRecord &record) {
  // Another process wrote it: it may be damaged.
  const transport::Announcement said = record.read();
  if (said.traits != invocation.collective->traits)
    return disagreement(invocation.describe(), fabric.rank(), invocation.collective->traits, r,
                        said.traits, isPartitioned(invocation));
  const transport::Segment &segment = fabric.of(r);
  const uint64_t offset = said.arenaOffset;
  const uint64_t bytes = invocation.collective->binding->arenaBytes(r);
  if (offset % transport::Arena::kAlignment != 0 || offset + bytes < offset ||
      offset + bytes > segment.arenaBytes())
    return {StatusCode::InternalError,
            "collective " + invocation.describe() + ": rank " + std::to_string(r) + " announced " +
                std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                " of its arena, which has " + std::to_string(segment.arenaBytes()) +
                "; something has overwritten its announce record"};
  // Buffers first: the block's address is what tells executors that the peer is bound.
  if (invocation.collective->accesses(r) && !bindBuffers(invocation, fabric, r, said.buffers))
    return {StatusCode::InternalError, "collective " + invocation.describe() + ": rank " +
                                           std::to_string(r) +
                                           " announced buffers outside its shared heap"};
  storeShared(&invocation.view.places[interpreter::arenaPlace(r)], charsAt(segment.arena(), offset),
              std::memory_order_release);
  return {};
}

} // namespace

StatusOr<bool> bindPeers(OpenInvocation &invocation, const Fabric &fabric, uint32_t awaited) {
  if (!recordOf(invocation, fabric, awaited))
    return false;
  // Bind all that have announced it, so that the next step finds them.
  for (uint32_t r : invocation.collective->binding->arenaRanks()) {
    if (loadShared(&invocation.view.places[interpreter::arenaPlace(r)],
                   std::memory_order_relaxed) != nullptr)
      continue;
    const transport::AnnounceRecord *record = recordOf(invocation, fabric, r);
    Status bound = record ? bindPeer(invocation, fabric, r, *record) : Status();
    if (!bound.ok())
      return bound;
  }
  return true;
}

namespace {

/// Rank r's ring, if it has one. It is looked for until it is there, then kept.
transport::PrepostedRing ringOf(IdState &id, const Fabric &fabric, uint32_t r) {
  using transport::PrepostedRing;
  Atomic<uint64_t> &known = id.peerRings[r];
  if (uint64_t word = known.load(std::memory_order_relaxed))
    return PrepostedRing::unpack(word);
  const transport::AnnounceCell *cell = peerCell(id, fabric, r);
  // Another process has stored it: it may be damaged.
  const uint64_t word = cell ? cell->ring.load(std::memory_order_acquire) : 0;
  const auto ring = PrepostedRing::unpack(word);
  if (!ring.isSound(fabric.of(r).arenaBytes()))
    return {}; // if it is damaged, the record will do
  known.store(word, std::memory_order_relaxed);
  return ring;
}

/// Where rank r's block of the invocation lies, if that is known before it has announced it.
char *prepostedBlock(const OpenInvocation &invocation, const Fabric &fabric, uint32_t r) {
  const transport::PrepostedRing ring = ringOf(*invocation.id, fabric, r);
  if (!invocation.collective->fits(ring, r))
    return nullptr;
  return charsAt(fabric.of(r).arena(),
                 ring.offsetOf(invocation.ordinal, invocation.collective->binding->arenaBytes(r)));
}

} // namespace

void prepare(OpenInvocation &invocation, const Fabric &fabric, const void *input, void *output) {
  const Collective &collective = *invocation.collective;
  const interpreter::Binding &binding = *collective.binding;
  WorkspaceLayout layout(collective, fabric.numRanks());
  // Zero: no peer is bound, and nothing has moved. Tasks are constructed below.
  std::memset(invocation.workspace, 0, layout.tasks);

  auto **places = reinterpret_cast<char **>(invocation.workspace);
  if (binding.arenaBytes(fabric.rank()) != 0) {
    char *block = charsAt(fabric.own().arena(), invocation.arenaOffset);
    // The lines of a ring hold flags of earlier invocations.
    if (!invocation.usesRing) {
      std::memset(block, 0, binding.controlBytes(fabric.rank()));
      std::memset(fabric.own().sharedArena() + invocation.arenaOffset, 0,
                  binding.headBytes(fabric.rank()));
    }
    places[interpreter::arenaPlace(fabric.rank())] = block;
  }
  // The view is all that steps read of the invocation.
  interpreter::Invocation &view = invocation.view;
  view.program = &binding.program();
  view.places = places;
  places[0] = static_cast<char *>(const_cast<void *>(input));
  places[1] = static_cast<char *>(output);
  places[2] = charsAt(invocation.workspace, layout.scratch);
  places[interpreter::kProgressPlace] = charsAt(invocation.workspace, layout.progress);
  view.flagBase = collective.flagBase(invocation.id->id, invocation.ordinal);
  view.doorbells = fabric.doorbells();
  view.peerMemory = fabric.peerMemory();
  view.inPlace = collective.aliasing.isInPlace(input, output);
  // Lines carry their data, so only slots refer to buffers.
  const bool mayRefer = binding.program().line.bytes == 0;
  view.references[0] = mayRefer ? fabric.referenceTo(input, binding.inputBytes()) : 0;
  view.references[1] = mayRefer ? fabric.referenceTo(output, binding.outputBytes()) : 0;

  auto *tasks = reinterpret_cast<BlockTask *>(invocation.workspace + layout.tasks);
  invocation.blocksLeft = binding.program().numBlocks;
  for (uint32_t b = 0; b < invocation.blocksLeft; ++b) {
    auto *task = new (tasks + b) BlockTask;
    task->block = b;
    task->renew(invocation);
  }
  invocation.tasks = {tasks, invocation.blocksLeft};
  // Where a peer's ring is known its block need not be announced.
  if (collective.mayUseRing)
    for (uint32_t r : binding.arenaRanks())
      if (r != fabric.rank())
        places[interpreter::arenaPlace(r)] = prepostedBlock(invocation, fabric, r);
}

Status compareNeighbours(const OpenInvocation &invocation, const Fabric &fabric) {
  threadFence(std::memory_order_seq_cst);
  for (uint32_t r : invocation.collective->compared) {
    const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, r);
    const transport::AnnounceRecord *record = cell ? cell->find(invocation.ordinal) : nullptr;
    if (!record)
      continue;
    const transport::CollectiveTraits theirs = record->read().traits;
    if (theirs != invocation.collective->traits)
      return disagreement(invocation.describe(), fabric.rank(), invocation.collective->traits, r,
                          theirs, isPartitioned(invocation));
  }
  return {};
}

StatusOr<bool> confirmPeer(OpenInvocation &invocation, const Fabric &fabric, uint32_t peer) {
  const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, peer);
  const transport::AnnounceRecord *record = cell ? cell->find(invocation.ordinal) : nullptr;
  if (!record)
    return false;
  char *const *place = &invocation.view.places[interpreter::arenaPlace(peer)];
  const char *before = loadShared(place, std::memory_order_relaxed);
  if (Status bound = bindPeer(invocation, fabric, peer, *record); !bound.ok())
    return bound;
  if (loadShared(place, std::memory_order_relaxed) != before) { // it has another ring by now
    invocation.id->peerRings[peer].store(0, std::memory_order_relaxed);
    invocation.id->ringsForgotten.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

insight::BlockMeter::Wait waitFor(const interpreter::Obstacle &obstacle, uint32_t instruction,
                                  OpenInvocation &invocation, const Fabric &fabric) {
  using interpreter::BlockReason;
  using transport::WaitReason;
  insight::BlockMeter::Wait wait{WaitReason::Announce, instruction, obstacle.peer};
  switch (obstacle.reason) {
  case BlockReason::None:
    break;
  case BlockReason::Announce: {
    // Announced and not begun: reports tell that from a rank that has not called.
    const transport::AnnounceCell *cell = invocation.collective->accesses(obstacle.peer)
                                              ? peerCell(*invocation.id, fabric, obstacle.peer)
                                              : nullptr;
    if (cell && cell->find(invocation.ordinal))
      wait.reason = WaitReason::Begin;
    break;
  }
  case BlockReason::Data:
    wait.reason = WaitReason::Data;
    break;
  case BlockReason::Credit:
    wait.reason = WaitReason::Credit;
    break;
  case BlockReason::Dependency:
    wait.reason = WaitReason::Dependency;
    wait.peer = fabric.rank();
    break;
  case BlockReason::Signal:
    wait.reason = WaitReason::Signal;
    break;
  }
  return wait;
}

insight::TraceEvent eventOf(insight::TraceKind kind, const OpenInvocation &invocation, Ticks from,
                            Ticks to) {
  insight::TraceEvent event;
  event.kind = kind;
  event.begin = from;
  event.end = to;
  event.collective = invocation.id->id;
  event.ordinal = invocation.ordinal;
  return event;
}

static_assert(transport::kFirstPartition == interpreter::kFirstPartition);

transport::WaitEdge edgeOf(const BlockTask &task) {
  transport::WaitEdge edge;
  edge.collective = task.invocation->id->id;
  edge.ordinal = task.invocation->ordinal;
  if (const transfer::Operation *operation = task.invocation->operation)
    edge.ordinal = operation->numberOf(edge.ordinal, task.wait.wait.instruction);
  edge.block = task.block;
  edge.instruction = task.wait.wait.instruction;
  edge.reason = task.wait.wait.reason;
  edge.peer = task.wait.wait.peer;
  edge.thing = task.obstacle.what;
  edge.since = task.wait.from;
  return edge;
}

} // namespace occl::daemon
