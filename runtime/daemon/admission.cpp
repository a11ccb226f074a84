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

Status Admission::add(CollectiveSpec spec) {
  if (spec.plan->numRanks != core.fabric->numRanks())
    return {StatusCode::InvalidPlan,
            "plan '" + spec.plan->name + "' is for " + std::to_string(spec.plan->numRanks) +
                " ranks, the communicator has " + std::to_string(core.fabric->numRanks())};
  auto collective =
      makeCollective(std::move(spec), {core.fabric->rank(), core.fabric->own().arenaBytes(),
                                       !core.fabric->sharesAddresses()});
  if (!collective.ok())
    return collective.status();
  if ((*collective)->direct.reachesScratch && !core.fabric->sharesAddresses())
    return {StatusCode::InvalidPlan,
            "plan '" + (*collective)->spec.plan->name +
                "' accesses the scratch of other ranks directly, which ranks that are processes of "
                "their own cannot; compile it without --direct"};
  for (uint32_t r : (*collective)->direct.storedTo)
    if (Status allowed = core.fabric->allowHeapStores(r); !allowed.ok())
      return allowed;
  uint64_t need = (*collective)->binding->arenaBytes(core.fabric->rank());
  std::lock_guard lock(mutex);
  if (!arena.canEverFit(need))
    return invalid("collective " + (*collective)->describe() + " needs " + std::to_string(need) +
                   " bytes of the arena, which has " + std::to_string(arena.size()) +
                   "; set arenaBytes higher");
  auto found = ids.find((*collective)->spec.id);
  if (found != ids.end() && found->second->registered)
    return invalid("collective " + found->second->registered->describe() +
                   " is already registered");
  if (numRegistered == transport::Segment::kCells)
    return invalid("collective " + (*collective)->describe() + ": " +
                   std::to_string(numRegistered) +
                   " are registered, which is the most; deregister some that are not used");
  if (found == ids.end()) {
    uint64_t id = (*collective)->spec.id;
    found = ids.emplace(id, std::make_unique<IdState>(id, core.fabric->numRanks())).first;
  }
  for (uint32_t r : (*collective)->direct.awaited)
    core.awaitAfterFailure(r);
  found->second->registered = std::move(*collective);
  ++numRegistered;
  return {};
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
  state.resident = nullptr;
  state.lane.reset();
  for (Atomic<char *> &lease : state.leases)
    lease.store(nullptr, std::memory_order_relaxed);
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
    known = {collective.describe(), collective.spec.plan};
  });
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
  IdState *id = find(submission.id);
  if (!id || !id->registered)
    return invalid("no collective with id " + std::to_string(submission.id) + " is registered");
  Collective &collective = *id->registered;
  Status buffers = checkBuffers(collective, submission.input, submission.output);
  if (!buffers.ok())
    return buffers;
  if (submission.callback && !collective.spec.callbacksNeverBlock)
    if (Status thread = core.device->callbacks.ensureThread(); !thread.ok())
      return thread;
  if (!collective.counters)
    collective.counters =
        std::make_unique<insight::CollectiveCounters>(collective.binding->program().numBlocks);
  auto reserved = reserve(*id, submission);
  if (!reserved.ok())
    return reserved.status();
  OpenInvocation &invocation = **reserved;
  Admitted admitted{&invocation, invocation.request, nullptr, {}};
  prepare(invocation, *core.fabric, submission.input, submission.output);
  if (submission.isOwn)
    keepLane(*id);
  auto timeout =
      collective.spec.timeout.count() != 0 ? collective.spec.timeout : core.options.timeout;
  invocation.deadline = coarseNow() + timeout;
  invocation.times.reset(ticks());
  collective.counters->submitted.add(1);
  if (core.trace.isOn())
    core.trace.record(eventOf(insight::TraceKind::Submit, invocation, invocation.times.submitted,
                              invocation.times.submitted));
  announce(invocation, core.countOpen(invocation.hasCallback, submission.isOwn));
  // From a callback it would be an executor more on the same stack, for whose work there is one.
  if (submission.isOwn || (submission.callback && collective.beginsAtOnce && !core.isCallingBack()))
    admitted.claimed = core.device->board.startClaimed(invocation, admitted.visit);
  if (admitted.claimed)
    return admitted;
  core.device->board.submit(invocation); // as many slots as there may be open: never full
  // From here on the invocation may be complete.
  core.ringReaders(collective);
  return admitted;
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
                               invocation.collective->traits, buffers,
                               {invocation.collective->spec.priority, turn});
}

bool Admission::isShared(const void *buffer, uint64_t bytes) const {
  return bytes == 0 || core.fabric->heap().offsetOf(buffer, bytes);
}

Status Admission::checkBuffers(const Collective &collective, const void *input,
                               const void *output) const {
  if (!collective.aliasing.accepts(input, output))
    return invalid("collective " + collective.describe() + ": " +
                   collective.aliasing.complaint(input, output));
  if (collective.direct.exists && !core.fabric->sharesAddresses() &&
      !(isShared(input, collective.binding->inputBytes()) &&
        isShared(output, collective.binding->outputBytes())))
    return invalid("collective " + collective.describe() +
                   ": its plan accesses buffers directly, and between processes that takes buffers "
                   "of occlMemAlloc; use such, or a plan compiled without --direct");
  return {};
}

} // namespace occl::daemon
