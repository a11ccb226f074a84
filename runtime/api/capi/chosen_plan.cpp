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

/// Thread blocks of a rank at most: the same on all ranks.
uint32_t mostBlocksOf(const cuda::DeviceRank &gpu, Way way) {
  if (way == Way::Started)
    return gpu.mostStartedBlocks();
  // Executed by the persistent kernel, or as if it were.
  return way == Way::Partitioned || gpu.isAcrossMachines() ? plan_library::kFewestBlocks
                                                           : gpu.settings().mostBlocks;
}

/// Of large messages: whether with fewer thread blocks several rounds are executed at a time.
bool shouldHaveFew(const plan::Plan &plan, uint32_t most) {
  return plan.protocol == plan::Protocol::Simple &&
         std::ranges::any_of(
             plan.ranks, [&](const plan::RankPlan &rank) { return rank.numThreadBlocks > most; });
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
  auto &library = plan_library::PlanLibrary::ofProcess();
  if (!comm.gpu)
    return library.choose(wanted);
  wanted.maxBlocks = mostBlocksOf(*comm.gpu, way);
  auto chosen = library.choose(wanted);
  // Of few executors there may be no plan that they execute at once.
  constexpr uint32_t kFewBlocks = plan_library::kFewestBlocks / 2;
  for (uint32_t most : {kFewBlocks, plan_library::kFewestBlocks})
    if (!chosen.ok() && wanted.maxBlocks < most) {
      wanted.maxBlocks = most;
      chosen = library.choose(wanted);
    }
  if (way != Way::Partitioned || !chosen.ok() || !shouldHaveFew(*chosen->plan, kFewBlocks))
    return chosen;
  wanted.maxBlocks = kFewBlocks;
  auto few = library.choose(wanted);
  return few.ok() ? few : chosen;
}

} // namespace occl::communicator
