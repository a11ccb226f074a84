// Which of the plans that come with OCCL serves a call.
#include "runtime/api/capi/handles.h"
#include "runtime/net/machine_group.h"

namespace occl::communicator {

namespace {

using plan_library::PlanClass;

/// Never by what a rank's buffers are: ranks would choose differently. Those of threads of one
/// process can all be accessed.
PlanClass classOf(const occlComm &comm, Way way) {
  // Each rank accesses its own buffers alone then, so plans with direct access do not serve.
  if (way == Way::Partitioned)
    return comm.gpu ? PlanClass::ResidentOrdinary : PlanClass::HostOrdinary;
  if (comm.gpu && way == Way::Started)
    return comm.gpu->hasRegisteredBuffers() ? PlanClass::ResidentRegistered
                                            : PlanClass::ResidentOrdinary;
  if (comm.gpu)
    // Many thread blocks that poll host memory are in each other's way.
    return comm.gpu->isAcrossMachines()       ? PlanClass::ResidentOrdinary
           : comm.gpu->hasRegisteredBuffers() ? PlanClass::DeviceRegistered
                                              : PlanClass::DeviceOrdinary;
  return comm.daemon->fabric().sharesAddresses() ? PlanClass::HostRegistered
                                                 : PlanClass::HostOrdinary;
}

} // namespace

StatusOr<plan_library::ChosenPlan> choosePlan(const occlComm &comm, occlKind_t kind, uint64_t bytes,
                                              uint32_t root, Way way) {
  plan_library::Wanted wanted;
  // Both enumerations have the kinds in the same order.
  wanted.kind = static_cast<plan_library::Kind>(kind - occlKindAllReduce);
  wanted.numRanks = comm.daemon->numRanks();
  wanted.bytes = bytes;
  wanted.root = root;
  wanted.where = classOf(comm, way);
  if (comm.gpu && way == Way::Called)
    wanted.maxBlocks = comm.gpu->settings().mostBlocks;
  wanted.numIslands = net::numEvenIslands(comm.daemon->fabric().ranks());
  return plan_library::PlanLibrary::ofProcess().choose(wanted);
}

} // namespace occl::communicator
