// How communicators come into being: at once, for the caller. Ranks come together in the
// background, so that no order in which ranks make communicators can be a wrong one.
#include "nccl/comm/init.h"
#include "nccl/abi/exports.h"
#include "nccl/base/environment.h"
#include "nccl/bootstrap/unique_id.h"
#include "nccl/calls/group.h"
#include "nccl/comm/handles.h"
#include "nccl/fallback/setting.h"
#include "nccl/streams/host_streams.h"
#include "nccl/streams/streams.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <utility>

namespace occl::nccl {

namespace {

/// At most, in a kernel; 0: nobody has said so. As in NCCL the environment counts most.
long maxCtas(const Config &config) {
  constexpr long kFewest = 16; // occlConfig_t::maxThreadBlocks
  const long given = std::strtol(setting("NCCL_MAX_CTAS").value_or("0").c_str(), nullptr, 10);
  const long ctas = given > 0 ? given : config.values.maxCTAs;
  return ctas == NCCL_CONFIG_UNDEF_INT ? 0 : std::clamp<long>(ctas, kFewest, INT_MAX);
}

} // namespace

occlConfig_t occlConfig(int device, uint32_t numRanks, const Config &given) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = OCCL_NO_TIMEOUT - 1;
  config.heapBytes = 1 << 20; // nothing here is of occlMemAlloc
  streams().configure(config, device);
  // With less, large messages are slower (docs/decisions/gpu/ordered-connectors.md). More than four
  // ranks were not measured with less than the default.
  if (numRanks <= 4 && config.deviceKind == occlDeviceCuda)
    config.arenaBytes = 128 << 20;
  config.maxThreadBlocks = static_cast<uint32_t>(maxCtas(given));
  // Most communicators of a program never have large calls. But a first larger call may then fail
  // for want of memory where the communicator's beginning would have, so programs ask for it.
  config.asNeeded = setting("OCCL_NCCL_MEMORY_AS_NEEDED").value_or("0") == "1";
  return config;
}

Outcome joinRanks(const NewComm &what, bool isAsked, Executor &made) {
  std::optional<Across> across; // until they have come together
  if (isAsked)
    if (Outcome outcome = makeOther(what, made.other, across); !outcome.ok() || made.other)
      return outcome;
  const int device = what.comm->device;
  occlConfig_t with = occlConfig(device, what.numRanks, what.comm->config);
  made.isAcross = across.has_value();
  if (across) // all are there: 30 seconds to join, and no deadline of calls
    with.timeoutMs = OCCL_NO_TIMEOUT;
  noteUse(what.numRanks, what.rank, device, "");
  const std::string name = across ? across->name : nameOf(what.id);
  return outcomeOf(occlCommInitRank(&made.own, what.numRanks, what.rank, name.c_str(), &with));
}

Outcome initRank(ncclComm_t *handle, int numRanks, const ncclUniqueId &id, int rank,
                 const ncclConfig_t *given, std::optional<int> onDevice) {
  nameIgnoredSettings();
  reportUse();
  if (!handle)
    return invalidArgument("comm must not be NULL");
  *handle = nullptr;
  if (numRanks < 1 || rank < 0 || rank >= numRanks)
    return invalidArgument("rank is " + std::to_string(rank) + ", nranks " +
                           std::to_string(numRanks) + ": ranks are 0 to nranks - 1");
  Config config;
  if (Outcome outcome = readConfig(given, config); !outcome.ok())
    return outcome;
  IdLayout layout;
  if (Outcome outcome = readUniqueId(id, layout); !outcome.ok())
    return outcome;
  FallbackSetting fallback;
  if (Outcome outcome = readFallbackSetting(fallback); !outcome.ok())
    return outcome;
  int device = onDevice.value_or(0);
  if (!onDevice)
    if (Outcome outcome = streams().currentDevice(device); !outcome.ok())
      return outcome;
  auto comm = std::make_shared<Comm>(config, device);
  if (isHostMode())
    comm->ownStream = HostStream::make();
  const auto size = static_cast<uint32_t>(numRanks), self = static_cast<uint32_t>(rank);
  comm->setShape(size, self);
  comm->lineage = {layout.name, layout.key};
  const std::string wish = wishForOther(fallback, size);
  const bool isAsked = !wish.empty() || (size > 1 && !onDevice);
  // The thread holds the communicator as long as this runs.
  Outcome begun = comm->begin([=, to = comm.get()](Executor &made) {
    return joinRanks({layout, size, self, wish, to}, isAsked, made);
  });
  if (!begun.ok())
    return begun;
  *handle = addHandle(comm);
  log(LogLevel::Info, "rank " + std::to_string(rank) + " of " + std::to_string(numRanks) +
                          ", device " + std::to_string(device) + ", id " + nameOf(layout));
  return {};
}

namespace {

Outcome initAll(ncclComm_t *handles, int numDevices, const int *devices) {
  nameIgnoredSettings();
  reportUse();
  if (!handles)
    return invalidArgument("comm must not be NULL");
  if (numDevices < 1)
    return invalidArgument("ndev is " + std::to_string(numDevices) + ", must be 1 or more");
  int present = 0;
  if (Outcome outcome = streams().numDevices(present); !outcome.ok())
    return outcome;
  if (!devices && numDevices > present)
    return invalidArgument("ndev is " + std::to_string(numDevices) + ", there are " +
                           std::to_string(present) + " devices");
  for (int i = 0; devices && i < numDevices; ++i) // ranks may share a device
    if (devices[i] < 0 || devices[i] >= present)
      return invalidArgument("there is no device " + std::to_string(devices[i]));
  ncclUniqueId id;
  if (Outcome outcome = makeUniqueId(id); !outcome.ok())
    return outcome;
  for (int i = 0; i < numDevices; ++i)
    if (Outcome outcome =
            initRank(&handles[i], numDevices, id, i, nullptr, devices ? devices[i] : i);
        !outcome.ok()) {
      for (; i > 0; --i) // they would wait for ranks that do not come
        ncclCommAbort(std::exchange(handles[i - 1], nullptr));
      return outcome;
    }
  return {};
}

} // namespace

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int numRanks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  return inGroup(guarded("ncclCommInitRankConfig",
                         [&] { return initRank(comm, numRanks, id, rank, config); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int numRanks, ncclUniqueId id, int rank) {
  return inGroup(
      guarded("ncclCommInitRank", [&] { return initRank(comm, numRanks, id, rank, nullptr); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommInitRank);

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int numRanks, int rank, int numIds,
                                      ncclUniqueId *ids, ncclConfig_t *config) {
  return inGroup(guarded("ncclCommInitRankScalable", [&] {
    // One place to meet is enough for the ranks of a machine.
    return ids && numIds > 0 ? initRank(comm, numRanks, ids[0], rank, config)
                             : invalidArgument("commIds holds nId ids, one at least");
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommInitRankScalable);

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int numDevices, const int *devices) {
  return inGroup(guarded("ncclCommInitAll", [&] { return initAll(comms, numDevices, devices); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommInitAll);
