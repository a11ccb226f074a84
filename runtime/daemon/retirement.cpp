// The part of admission that gives back what a deregistered collective holds: its announce cell,
// its leased blocks, and in the end all that is known of its id but how often it was submitted.
#include "runtime/daemon/admission.h"

#include <string>

namespace occl::daemon {

Status Admission::ensureCell(IdState &id) {
  if (cells.activate(id))
    return {};
  recycleCells(transport::Segment::kCells);
  if (cells.activate(id))
    return {};
  std::string holders = cells.describeRetired();
  return {StatusCode::Again,
          "nothing free now: an announce cell for collective " + id.registered->describe() +
              ": all " + std::to_string(transport::Segment::kCells) + " are taken" +
              (holders.empty() ? std::string() : "; held by deregistered collectives: " + holders) +
              ". Deregister them on all ranks, then call again"};
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
  if (id.nextOrdinal != 0)
    formerOrdinals[id.id] = id.nextOrdinal;
  ids.erase(id.id);
}

} // namespace occl::daemon
