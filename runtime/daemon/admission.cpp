#include "runtime/daemon/admission.h"

#include "runtime/base/atomic.h"
#include "runtime/daemon/lane.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

} // namespace

Admission::Admission(Core &core)
    : core(core), cells(*core.fabric), arena(core.fabric->own().arenaBytes()) {}

Admission::~Admission() {
  while (oldest)
    forget(*oldest);
}

StatusOr<std::unique_ptr<Collective>> Admission::bindShape(CollectiveSpec spec) {
  if (spec.plan->numRanks != core.fabric->numRanks())
    return Status(StatusCode::InvalidPlan,
                  "plan '" + spec.plan->name + "' is for " + std::to_string(spec.plan->numRanks) +
                      " ranks, the communicator has " + std::to_string(core.fabric->numRanks()));
  auto shape =
      makeCollective(std::move(spec), {core.fabric->rank(), core.fabric->own().arenaBytes(),
                                       !core.fabric->sharesAddresses()});
  if (!shape.ok())
    return shape;
  if ((*shape)->direct.reachesScratch && !core.fabric->sharesAddresses())
    return Status(StatusCode::InvalidPlan,
                  "plan '" + (*shape)->spec.plan->name +
                      "' accesses the scratch of other ranks directly, which ranks that are "
                      "processes of their own cannot; compile it without --direct");
  for (uint32_t r : (*shape)->direct.storedTo)
    if (Status allowed = core.fabric->allowHeapStores(r); !allowed.ok())
      return allowed;
  return shape;
}

/// Under the lock: what has to be before anything of the shape is submitted.
Status Admission::makeReady(const Collective &shape, uint64_t id) {
  const uint64_t need = shape.binding->arenaBytes(core.fabric->rank());
  if (!arena.canEverFit(need))
    return invalid("collective " + shape.describe(id) + " needs " + std::to_string(need) +
                   " bytes of the arena, which has " + std::to_string(arena.size()) +
                   "; set arenaBytes higher");
  for (uint32_t r : shape.direct.awaited)
    core.awaitAfterFailure(r);
  return {};
}

Status Admission::add(CollectiveSpec spec) {
  const uint64_t id = spec.id;
  if (id == kCallSequence)
    return invalid("id " + std::to_string(id) + " is that of calls without an id; take another");
  auto collective = bindShape(std::move(spec));
  if (!collective.ok())
    return collective.status();
  std::lock_guard lock(mutex);
  auto found = ids.find(id);
  if (found != ids.end() && found->second->registered)
    return invalid("collective " + found->second->registered->describe(id) +
                   " is already registered");
  if (numRegistered == transport::Segment::kCells)
    return invalid("collective " + (*collective)->describe(id) + ": " +
                   std::to_string(numRegistered) +
                   " are registered, which is the most; deregister some that are not used");
  if (Status ready = makeReady(**collective, id); !ready.ok())
    return ready;
  sequenceOf(id).registered = std::move(*collective);
  ++numRegistered;
  return {};
}

Status Admission::learnShape(const Signature &signature, CollectiveSpec spec) {
  auto shape = bindShape(std::move(spec));
  if (!shape.ok())
    return shape.status();
  (*shape)->signature = signature;
  std::lock_guard lock(mutex);
  if (Status ready = makeReady(**shape, kCallSequence); !ready.ok())
    return ready;
  shapes.add(std::move(*shape));
  return {};
}

IdState &Admission::sequenceOf(uint64_t id) {
  auto found = ids.find(id);
  if (found == ids.end())
    found = ids.emplace(id, std::make_unique<IdState>(id, core.fabric->numRanks())).first;
  return *found->second;
}

Collective *Admission::shapeOf(IdState &id, const Submission &submission) {
  return submission.signature ? shapes.find(*submission.signature) : id.registered.get();
}

Status Admission::remove(uint64_t id) {
  std::lock_guard lock(mutex);
  auto found = ids.find(id);
  if (found == ids.end() || !found->second->registered)
    return invalid("no collective with id " + std::to_string(id) + " is registered");
  IdState &state = *found->second;
  for (const OpenInvocation *invocation : state.unreclaimed)
    if (invocation && !invocation->finished.load(std::memory_order_acquire))
      return invalid("collective " + invocation->describe() +
                     " is in flight; wait for it before you deregister it");
  forgetResident(state);
  removed.push_back(std::move(state.registered));
  --numRegistered;
  reclaimAll();
  sweepRemoved();
  if (state.cell)
    cells.retire(state);
  else
    dropIfUnused(state);
  constexpr size_t kStep = 8; // more than come in: a rank that removes keeps up
  recycleCells(kStep);
  return {};
}

void Admission::sweepRemoved() {
  std::erase_if(removed, [](const auto &collective) { return collective->unreclaimed == 0; });
}

insight::KnownCollective Admission::lookUp(uint64_t id) {
  insight::KnownCollective known{"id " + std::to_string(id), nullptr};
  inspect(id, [&](const Collective &collective) {
    known = {collective.describe(id), collective.spec.plan};
  });
  if (!known.plan)
    lookUpCall(id, known);
  return known;
}

std::vector<uint64_t> Admission::registered() {
  std::vector<uint64_t> found;
  {
    std::lock_guard lock(mutex);
    for (const auto &[id, state] : ids)
      if (state->registered)
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
  std::lock_guard lock(mutex);
  IdState *id = submission.signature ? &sequenceOf(submission.id) : find(submission.id);
  Collective *shape = id ? shapeOf(*id, submission) : nullptr;
  if (!shape && submission.signature)
    return Status(StatusCode::InProgress, "the shape is not known");
  if (!shape)
    return invalid("no collective with id " + std::to_string(submission.id) + " is registered");
  auto admitted = submit(*id, *shape, submission);
  if (!admitted.ok() && submission.signature)
    dropIfUnused(*id);
  return admitted;
}

StatusOr<Admitted> Admission::submit(IdState &id, Collective &shape, const Submission &submission) {
  Status buffers = checkBuffers(shape, submission);
  if (!buffers.ok())
    return buffers;
  const bool neverBlocks =
      submission.options ? submission.options->callbacksNeverBlock : shape.spec.callbacksNeverBlock;
  if (submission.callback && !neverBlocks)
    if (Status thread = core.device->callbacks.ensureThread(); !thread.ok())
      return thread;
  if (!shape.counters)
    shape.counters =
        std::make_unique<insight::CollectiveCounters>(shape.binding->program().numBlocks);
  auto reserved = reserve(id, shape, submission);
  if (!reserved.ok())
    return reserved.status();
  OpenInvocation &invocation = **reserved;
  Admitted admitted{&invocation, invocation.request, nullptr, {}};
  prepare(invocation, *core.fabric, submission.input, submission.output);
  if (submission.isOwn && invocation.isResident)
    keepLane(id);
  auto timeout = invocation.timeout.count() != 0 ? invocation.timeout : core.options.timeout;
  invocation.deadline = coarseNow() + timeout;
  invocation.times.reset(ticks());
  shape.counters->submitted.add(1);
  if (core.trace.isOn())
    core.trace.record(eventOf(insight::TraceKind::Submit, invocation, invocation.times.submitted,
                              invocation.times.submitted));
  announce(invocation, core.countOpen(invocation.hasCallback, submission.isOwn));
  compare(invocation);
  // From a callback it would be an executor more on the same stack, for whose work there is one.
  if (submission.isOwn || (submission.callback && shape.beginsAtOnce && !core.isCallingBack()))
    admitted.claimed = core.device->board.startClaimed(invocation, admitted.visit);
  if (admitted.claimed)
    return admitted;
  core.device->board.submit(invocation); // as many slots as there may be open: never full
  // From here on the invocation may be complete.
  core.ringReaders(shape);
  return admitted;
}

void Admission::compare(const OpenInvocation &invocation) {
  if (invocation.collective->compared.empty())
    return;
  if (Status same = compareNeighbours(invocation, *core.fabric); !same.ok())
    core.fabric->fail(same);
}

/// Of an id that is not registered, whose last invocations are still known.
void Admission::lookUpCall(uint64_t id, insight::KnownCollective &known) {
  std::lock_guard lock(mutex);
  auto found = ids.find(id);
  if (found == ids.end())
    return;
  for (const OpenInvocation *invocation : found->second->unreclaimed)
    if (invocation && (!known.plan || !invocation->finished.load(std::memory_order_acquire)))
      known = {invocation->collective->describe(id, invocation->name),
               invocation->collective->spec.plan};
}

void Admission::announce(const OpenInvocation &invocation, uint32_t turn) {
  transport::BufferAddresses buffers{};
  const interpreter::Invocation &view = invocation.view;
  if (invocation.collective->direct.accessors.empty()) {
    // Nobody asks where they lie.
  } else if (!core.fabric->sharesAddresses()) {
    const interpreter::Binding &binding = *invocation.collective->binding;
    buffers[0] = core.fabric->referenceTo(view.places[0], binding.inputBytes());
    buffers[1] = core.fabric->referenceTo(view.places[1], binding.outputBytes());
  } else {
    std::transform(view.places, view.places + buffers.size(), buffers.begin(),
                   [](char *address) { return reinterpret_cast<uint64_t>(address); });
  }
  invocation.id->cell->publish(invocation.ordinal, invocation.arenaOffset,
                               invocation.collective->traits, buffers, {invocation.priority, turn});
}

bool Admission::isShared(const void *buffer, uint64_t bytes) const {
  return bytes == 0 || core.fabric->heap().offsetOf(buffer, bytes);
}

Status Admission::checkBuffers(const Collective &collective, const Submission &submission) const {
  const void *input = submission.input, *output = submission.output;
  if (!collective.aliasing.accepts(input, output))
    return invalid("collective " + collective.describe(submission.id) + ": " +
                   collective.aliasing.complaint(input, output));
  if (collective.direct.exists && !core.fabric->sharesAddresses() &&
      !(isShared(input, collective.binding->inputBytes()) &&
        isShared(output, collective.binding->outputBytes())))
    return invalid("collective " + collective.describe(submission.id) +
                   ": its plan accesses buffers directly, and between processes that takes buffers "
                   "of occlMemAlloc; use such, or a plan compiled without --direct");
  return {};
}

} // namespace occl::daemon
