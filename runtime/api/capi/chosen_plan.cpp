// Which of the plans that come with OCCL serves a call.
#include "runtime/api/capi/handles.h"
#include "runtime/net/machine_group.h"

#include <algorithm>

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

/// Thread blocks of a round of a partitioned collective.
constexpr uint32_t kBlocksOfRound = 8;

/// The same on all ranks.
uint32_t mostBlocksOf(const cuda::DeviceRank &gpu, Way way) {
  if (way == Way::Called && !gpu.isAcrossMachines())
    return gpu.settings().mostBlocks;
  // Executed by the persistent kernel, or as if it were.
  const uint32_t most = way == Way::Started ? gpu.mostStartedBlocks() : 0;
  return std::max(most, plan_library::kFewestBlocks);
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
  wanted.numIslands = net::numEvenIslands(comm.daemon->fabric().ranks());
  if (comm.gpu)
    wanted.maxBlocks = mostBlocksOf(*comm.gpu, way);
  auto &library = plan_library::PlanLibrary::ofProcess();
  // Of few thread blocks there can be several rounds at a time, where the library has such a plan.
  if (comm.gpu && way == Way::Partitioned) {
    plan_library::Wanted ofFew = wanted;
    ofFew.maxBlocks = kBlocksOfRound;
    if (auto few = library.choose(ofFew); few.ok())
      return few;
  }
  return library.choose(wanted);
}

} // namespace occl::communicator
