// The part of admission that gives back what a deregistered collective holds: its announce cell,
// its leased blocks, and in the end all that is known of its id.
#include "runtime/daemon/admission.h"
#include "runtime/daemon/lane.h"

#include <string>

namespace occl::daemon {

Status Admission::ensureCell(IdState &id) {
  using Activation = AnnounceCells::Activation;
  Activation activated = cells.activate(id);
  if (activated == Activation::NoCellFree) {
    recycleCells(transport::Segment::kCells);
    activated = cells.activate(id);
  }
  if (activated == Activation::Done)
    return {};
  std::string what = "an announce cell for " + describe(id) + ": ";
  if (activated == Activation::PeerLeaves)
    return nothingFree(what + "another rank is just giving back its own of an earlier registration",
                       "", "Wait a moment");
  std::string holders = cells.describeRetired();
  return nothingFree(what + "all " + std::to_string(transport::Segment::kCells) + " are taken",
                     holders.empty() ? "" : "deregistered collectives: " + holders,
                     "Deregister them on all ranks");
}

void Admission::recycleCells(size_t most) {
  cells.advance(
      most,
      [this](IdState &id) {
        for (OpenInvocation *invocation : id.unreclaimed)
          if (invocation && canReclaim(*invocation))
            reclaim(*invocation);
      },
      [this](IdState &id) { dropCell(id); });
  sweepRemoved();
}

void Admission::tidy() {
  constexpr size_t kStep = 256; // some tens of microseconds
  std::lock_guard lock(mutex);
  if (cells.hasRetired())
    recycleCells(kStep);
}

/// Nobody may rely on where the peers' rings lie once its cell can go.
void Admission::forgetResident(IdState &id) {
  if (id.resident)
    --id.resident->leases;
  id.resident = nullptr;
  id.lane.reset();
  for (Atomic<char *> &lease : id.leases)
    lease.store(nullptr, std::memory_order_relaxed);
}

void Admission::dropCell(IdState &id) {
  if (id.ringBytes != 0) {
    arena.release(id.ringOffset, id.ringBytes);
    residentBytes -= id.ringBytes;
  }
  id.hasLease = false;
  id.ringBytes = 0;
  dropIfUnused(id);
}

void Admission::dropIfUnused(IdState &id) {
  if (id.registered || id.cell)
    return;
  if (lastFound == &id)
    lastFound = nullptr;
  ids.erase(id.id);
}

} // namespace occl::daemon
