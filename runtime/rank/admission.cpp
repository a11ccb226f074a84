// How calls are admitted: shapes are bound, buffers checked, invocations announced and submitted.
#include "runtime/rank/admission.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/net/network.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <new>
#include <utility>

namespace occl::daemon {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// Of an arena of so many bytes the part that is for rings, which stay as long as their sequences:
/// what is in flight never waits for them.
uint64_t ringBytesOf(uint64_t arenaBytes) {
  constexpr uint64_t kMost = 1 << 20;
  return std::min(kMost,
                  arenaBytes / 8 / transport::Arena::kAlignment * transport::Arena::kAlignment);
}

} // namespace

Admission::Admission(Core &core)
    : core(core), cells(*core.fabric),
      mostActive(std::max<size_t>(64, transport::Segment::kCells / 2 / core.fabric->numRanks())),
      arena(core.fabric->own().arenaBytes() - ringBytesOf(core.fabric->own().arenaBytes())),
      rings(core.fabric->own().arenaBytes() - arena.size()) {
  // Records of other machines are copies: the network compares them with this rank's calls.
  if (net::Network *network = core.fabric->network())
    network->setOnMismatch([&core](const net::Call &mine, uint32_t peer,
                                   const transport::CollectiveTraits &theirs) {
      core.fabric->fail(disagreement(mine.id == kCallSequence
                                         ? "call " + std::to_string(mine.ordinal)
                                         : "of " + transport::describeSequence(mine.id) + ", " +
                                               transport::describeInvocation(mine.id, mine.ordinal),
                                     core.fabric->rank(), mine.traits, peer, theirs));
    });
}

Admission::~Admission() {
  while (oldest)
    forget(*oldest);
}

StatusOr<std::unique_ptr<Collective>> Admission::bindShape(CollectiveSpec spec) {
  if (spec.plan->numRanks != core.fabric->numRanks())
    return Status(StatusCode::InvalidPlan,
                  "plan '" + spec.plan->name + "' is for " + std::to_string(spec.plan->numRanks) +
                      " ranks, the communicator has " + std::to_string(core.fabric->numRanks()));
  // Binding takes long, and so comes before the admission's lock is taken.
  auto shape = makeCollective(std::move(spec),
                              {core.fabric->rank(), core.fabric->own().arenaBytes(),
                               !core.fabric->sharesAddresses(), core.fabric->remoteRanks()});
  if (!shape.ok())
    return shape;
  // Direct access needs mapped memory: none between machines, no scratch between processes.
  if ((*shape)->direct.exists && core.fabric->network())
    return Status(StatusCode::InvalidPlan,
                  "plan '" + (*shape)->spec.plan->name +
                      "' accesses buffers of other ranks directly, which ranks of several machines "
                      "cannot; compile it without --direct");
  if ((*shape)->direct.reachesScratch && !core.fabric->sharesAddresses())
    return Status(StatusCode::InvalidPlan,
                  "plan '" + (*shape)->spec.plan->name +
                      "' accesses the scratch of other ranks directly, which ranks that are "
                      "processes of their own cannot; compile it without --direct");
  // Heaps of other processes are mapped for reading until a plan stores to them.
  for (uint32_t r : (*shape)->direct.storedTo)
    if (Status allowed = core.fabric->allowHeapStores(r); !allowed.ok())
      return allowed;
  return shape;
}

/// Under the lock: what has to be before anything of the shape is submitted.
Status Admission::makeReady(const Collective &shape) {
  // What any rank needs counts, all arenas being alike: those that need less would go on, and wait
  // for the one that is refused.
  const uint32_t rank = shape.neediestRank();
  const uint64_t need = shape.binding->arenaBytes(rank);
  if (!arena.canEverFit(need))
    return invalid("plan '" + shape.spec.plan->name + "' needs " + std::to_string(need) +
                   " bytes of the arena of rank " + std::to_string(rank) + ", which has " +
                   std::to_string(arena.size()) + "; set arenaBytes higher");
  for (uint32_t r : shape.direct.awaited)
    core.awaitAfterFailure(r);
  return {};
}

/// Under the lock.
StatusOr<Collective *> Admission::add(const Signature &signature,
                                      std::unique_ptr<Collective> shape) {
  shape->signature = signature;
  if (Status ready = makeReady(*shape); !ready.ok())
    return ready;
  return &shapes.add(std::move(shape));
}

Status Admission::learnShape(const Signature &signature, CollectiveSpec spec) {
  auto shape = bindShape(std::move(spec));
  if (!shape.ok())
    return shape.status();
  std::lock_guard lock(mutex);
  return add(signature, std::move(*shape)).status();
}

StatusOr<Collective *> Admission::hold(const Signature &signature, CollectiveSpec spec) {
  const auto counted = [](Collective *shape) {
    ++shape->unreclaimed;
    return shape;
  };
  {
    std::lock_guard lock(mutex);
    if (Collective *known = shapes.find(signature))
      return counted(known);
  }
  auto shape = bindShape(std::move(spec));
  if (!shape.ok())
    return shape.status();
  // Another thread may have added it meanwhile: add() returns that one then.
  std::lock_guard lock(mutex);
  auto added = add(signature, std::move(*shape));
  return added.ok() ? counted(*added) : added;
}

uint64_t Admission::roomOf(const Collective &shape) {
  const uint64_t need = shape.binding->arenaBytes(shape.neediestRank());
  return need == 0 ? 0 : transport::Arena::roundToClass(need);
}

transport::Home *Admission::makeHome(uint64_t bytes) {
  std::lock_guard lock(mutex);
  return homes.make(bytes);
}

void Admission::giveUp(transport::Home &home) {
  std::lock_guard lock(mutex);
  homes.giveUp(home);
}

uint64_t Admission::homeRoom() {
  std::lock_guard lock(mutex);
  return homes.bytes();
}

void Admission::letGo(Collective &shape) {
  std::lock_guard lock(mutex);
  --shape.unreclaimed;
}

IdState &Admission::sequenceOf(uint64_t id) {
  if (IdState *known = find(id))
    return *known;
  lastFound =
      ids.emplace(id, std::make_unique<IdState>(id, core.fabric->numRanks())).first->second.get();
  return *lastFound;
}

insight::KnownCollective Admission::lookUp(uint64_t id) {
  // Transfers have no sequence here; their ids say between which ranks they are.
  if (const auto pair = transport::pairOf(id))
    return {"transfers " + transport::describe(*pair), nullptr};
  if (const auto pair = transport::partitionedPairOf(id))
    return {"partitioned transfers " + transport::describe(*pair), nullptr};
  if (id == transport::kTransferGroups)
    return {"groups of transfers", nullptr};
  insight::KnownCollective known{
      id == kCallSequence ? "the communicator's calls" : transport::describeSequence(id), nullptr};
  std::lock_guard lock(mutex);
  auto found = ids.find(id);
  if (found == ids.end() || !found->second->plan)
    return known;
  const IdState &sequence = *found->second;
  known = {sequence.describe(), sequence.plan, sequence.rounds};
  // An invocation in flight goes before the last one that was named.
  for (const OpenInvocation *invocation : sequence.unreclaimed)
    if (invocation && !invocation->finished.load(std::memory_order_acquire))
      known = {invocation->collective->describe(id, invocation->name),
               invocation->collective->spec.plan, invocation->collective->spec.rounds};
  return known;
}

std::vector<uint64_t> Admission::sequences() {
  std::vector<uint64_t> found;
  {
    std::lock_guard lock(mutex);
    for (const auto &[id, sequence] : ids)
      // Sequences without a plan have not had an invocation yet.
      if (sequence->plan)
        found.push_back(id);
  }
  std::ranges::sort(found);
  return found;
}

IdState *Admission::find(uint64_t id) {
  if (lastFound && lastFound->id == id)
    return lastFound;
  auto found = ids.find(id);
  return found == ids.end() ? nullptr : lastFound = found->second.get();
}

StatusOr<Admitted> Admission::submit(const Submission &submission) {
  std::unique_lock lock(mutex);
  Collective *shape = shapes.find(*submission.signature);
  if (!shape)
    return Status(StatusCode::InProgress, "the shape is not known");
  // A refused call leaves no sequence behind that has nothing. One that is admitted has a cell.
  const auto drop = [this](const uint64_t *id) {
    if (IdState *refused = find(*id))
      dropIfUnused(*refused);
  };
  const std::unique_ptr<const uint64_t, decltype(drop)> dropping(&submission.id, drop);
  // A scaled input, or one in place of a plan that cannot have that, is copied first.
  return readsCopy(*shape, submission) ? submitScaled(lock, *shape, submission)
                                       : submit(sequenceOf(submission.id), *shape, submission);
}

/// Counters and a place on the board for each thread block, from the first invocation on.
void Admission::makeRoom(IdState &id, uint32_t numBlocks) {
  const uint32_t known = id.counters.numBlocks();
  if (numBlocks <= known)
    return;
  core.device->board.addRoom(core.place, numBlocks - known);
  try {
    id.counters.ensure(numBlocks);
  } catch (const std::bad_alloc &) { // what has counters has its room
    core.device->board.removeRoom(core.place, numBlocks - id.counters.numBlocks());
    throw;
  }
}

StatusOr<Admitted> Admission::submit(IdState &id, Collective &shape, const Submission &submission) {
  Status buffers = checkBuffers(shape, submission);
  if (!buffers.ok())
    return buffers;
  // Without a thread for its callback the call is refused, rather than its callback be lost.
  if (submission.callback && !submission.options->callbacksNeverBlock)
    if (Status thread = core.device->callbacks.ensureThread(); !thread.ok())
      return thread;
  makeRoom(id, shape.binding->program().numBlocks);
  auto reserved = reserve(id, shape, submission);
  if (!reserved.ok())
    return reserved.status();
  // Nothing below needs memory that may be missing: the call is admitted.
  OpenInvocation &invocation = **reserved;
  Admitted admitted{&invocation, invocation.request, nullptr, {}};
  prepare(invocation, *core.fabric, submission.input, submission.output);
  if (submission.isOwn && invocation.usesRing)
    keepLane(invocation);
  auto timeout = invocation.timeout.count() != 0 ? invocation.timeout : core.options.timeout;
  // A call that has waited for room keeps the deadline of its first try.
  const bool hasWaited = submission.since != SteadyClock::time_point{};
  invocation.deadline = (hasWaited ? submission.since : coarseNow()) + timeout;
  invocation.times.reset(ticks());
  id.counters.submitted.add(1);
  if (core.trace.isOn())
    core.trace.record(eventOf(insight::TraceKind::Submit, invocation, invocation.times.submitted,
                              invocation.times.submitted));
  // Peers hear of it here: from now on it cannot be refused.
  announce(invocation, core.countOpen(invocation.hasCallback, submission.isOwn));
  core.compare(invocation);
  // From a callback it would be an executor more on the same stack, for whose work there is one.
  if (submission.isOwn || (submission.callback && shape.beginsAtOnce && !core.isCallingBack()))
    admitted.claimed = core.device->board.startClaimed(invocation, admitted.visit);
  if (admitted.claimed)
    return admitted;
  // Not claimed: an executor starts it when its predecessor has ended.
  core.device->board.submit(invocation); // as many slots as there may be open: never full
  // From here on the invocation may be complete.
  core.ringReaders(shape);
  return admitted;
}

void Admission::announce(const OpenInvocation &invocation, uint32_t turn) {
  transport::BufferAddresses buffers{};
  const interpreter::Invocation &view = invocation.view;
  if (invocation.collective->direct.accessors.empty()) {
    // Nobody asks where they lie.
  } else if (!core.fabric->sharesAddresses()) {
    // Other processes know buffers by references into the heap, threads by their addresses.
    const interpreter::Binding &binding = *invocation.collective->binding;
    buffers[0] = core.fabric->referenceTo(view.places[0], binding.inputBytes());
    buffers[1] = core.fabric->referenceTo(view.places[1], binding.outputBytes());
  } else {
    std::transform(view.places, view.places + buffers.size(), buffers.begin(),
                   [](char *address) { return reinterpret_cast<uint64_t>(address); });
  }
  // The record has all that a reader needs to bind this rank's block.
  invocation.id->cell->publish(invocation.ordinal, invocation.arenaOffset,
                               invocation.collective->traits, buffers, {invocation.priority, turn});
  if (core.fabric->network())
    tellOtherMachines(invocation, {invocation.priority, turn});
}

void Admission::tellOtherMachines(const OpenInvocation &invocation, transport::Urgency urgency) {
  net::Call call;
  call.id = invocation.id->id;
  call.ordinal = invocation.ordinal;
  call.traits = invocation.collective->traits;
  call.urgency = urgency;
  // The sending thread finds the words of this invocation by these.
  call.arenaOffset = invocation.arenaOffset;
  call.cell = invocation.id->cell;
  call.crossing = invocation.collective->crossing;
  // Ranks of this machine have heard of it: without memory the communicator ends.
  core.fabric->failUnless([&]() -> Status {
    core.fabric->network()->open(std::move(call));
    return {};
  });
}

bool Admission::isShared(const void *buffer, uint64_t bytes) const {
  return bytes == 0 || core.fabric->heap().offsetOf(buffer, bytes);
}

Status Admission::checkBuffers(const Collective &collective, const Submission &submission) const {
  const void *input = submission.input, *output = submission.output;
  const auto describe = [&] {
    const char *name = submission.options->name;
    return collective.describe(submission.id, name ? name : "");
  };
  if (!collective.aliasing.accepts(input, output))
    return invalid("collective " + describe() + ": " +
                   collective.aliasing.complaint(input, output));
  // Peers in other processes have mapped the heap alone.
  if (collective.direct.exists && !core.fabric->sharesAddresses() &&
      !(isShared(input, collective.binding->inputBytes()) &&
        isShared(output, collective.binding->outputBytes())))
    return invalid("collective " + describe() +
                   ": its plan accesses buffers directly, and between processes that takes buffers "
                   "of occlMemAlloc; use such, or a plan compiled without --direct");
  return {};
}

} // namespace occl::daemon
