// Which of the plans that come with OCCL serves a call.
#include "runtime/communicator/handles.h"

#include "runtime/plan_library/plan_library.h"

#include <utility>

namespace occl::communicator {

namespace {

using plan_library::PlanClass;

/// Threads of one process can access each other's buffers, whatever these are.
PlanClass classOf(const occlComm &comm) {
  if (comm.gpu)
    return comm.gpu->settings().registeredBuffers ? PlanClass::DeviceRegistered
                                                  : PlanClass::DeviceOrdinary;
  return comm.daemon->fabric().sharesAddresses() ? PlanClass::HostRegistered
                                                 : PlanClass::HostOrdinary;
}

} // namespace

StatusOr<ChosenPlan> choosePlan(const occlComm &comm, occlKind_t kind, uint64_t bytes,
                                uint32_t root) {
  plan_library::Wanted wanted;
  wanted.kind = static_cast<plan_library::Kind>(kind - occlKindAllReduce);
  wanted.numRanks = comm.daemon->numRanks();
  wanted.bytes = bytes;
  wanted.root = root;
  wanted.where = classOf(comm);
  auto chosen = plan_library::PlanLibrary::ofProcess().choose(wanted);
  if (!chosen.ok())
    return chosen.status();
  return ChosenPlan{std::move(chosen->plan), chosen->hash};
}

} // namespace occl::communicator
