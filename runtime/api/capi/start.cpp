// How communicators begin and end.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/capi/live_handles.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/records/segment.h"
#include "runtime/net/machine_group.h"
#include "runtime/plan_library/plan_library.h"
#include "runtime/rank/device_registry.h"
#include "runtime/sync/deadline.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::communicator;

namespace {

/// A configuration with its defaults applied.
struct Settings {
  daemon::Options options;
  daemon::DeviceRequest device;
  uint64_t segmentBytes = 0, heapBytes = 0;
  std::optional<cuda::DeviceRankOptions> cuda;
};

Status invalid(const char *what) { return {StatusCode::InvalidArgument, what}; }

Status checkRanges(const occlConfig_t &given) {
  static_assert(plan_library::kFewestBlocks == 16, "as the text says");
  constexpr uint32_t kMaxWorkers = 256;
  constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 40;
  constexpr uint32_t kMaxStreams = 1024;
  // As long as executors sleep: who polls looks at deadlines and dead peers as late as who sleeps.
  constexpr uint32_t kMaxSpinMicroseconds = 20000;
  // Zero is valid everywhere and stands for the default.
  if (given.preemption > 2)
    return invalid("config->preemption must be 1 (on), 2 (off) or 0 (on)");
  if (given.workers > kMaxWorkers)
    return invalid("config->workers must be at most 256");
  if (given.spinMicroseconds > kMaxSpinMicroseconds)
    return invalid("config->spinMicroseconds must be at most 20000");
  if (given.maxInFlight > daemon::RequestTable::kMaxCapacity)
    return invalid("config->maxInFlight must be at most 2^20");
  if (given.arenaBytes > kMaxArenaBytes)
    return invalid("config->arenaBytes must be at most 2^40");
  if (given.orderPolicy > static_cast<uint32_t>(scheduler::kLastOrder))
    return invalid("config->orderPolicy is none of occlOrderPolicy_t");
  if (given.budgetPolicy > static_cast<uint32_t>(scheduler::kLastBudget))
    return invalid("config->budgetPolicy is none of occlBudgetPolicy_t");
  if (given.heapBytes > kMaxArenaBytes)
    return invalid("config->heapBytes must be at most 2^40");
  if (given.deviceKind > occlDeviceCuda)
    return invalid("config->deviceKind is none of occlDeviceKind_t");
  if (given.strict > 2)
    return invalid("config->strict must be 1 (on), 2 (off) or 0 (off)");
  if (given.registeredBuffers > 1)
    return invalid("config->registeredBuffers must be 0 or 1");
  if (given.asNeeded > 1)
    return invalid("config->asNeeded must be 0 or 1");
  if (given.maxThreadBlocks != 0 && given.maxThreadBlocks < plan_library::kFewestBlocks)
    return invalid("config->maxThreadBlocks must be 0, or at least 16");
  if (given.streams > kMaxStreams)
    return invalid("config->streams must be at most 1024");
  return {};
}

StatusOr<Settings> settingsFrom(const occlConfig_t *config) {
  occlConfig_t given = OCCL_CONFIG_INITIALIZER;
  if (config && !copySized(given, config))
    return invalid("config->size is not set; start from OCCL_CONFIG_INITIALIZER");
  Status inRange = checkRanges(given);
  if (!inRange.ok())
    return inRange;
  Settings settings;
  daemon::Options &options = settings.options;
  if (given.timeoutMs != 0 && given.timeoutMs != OCCL_NO_TIMEOUT)
    options.timeout = options.setUpTimeout = std::chrono::milliseconds(given.timeoutMs);
  if (given.preemption != 0)
    settings.device.preemption = given.preemption != 2;
  if (given.workers != 0)
    settings.device.workers = given.workers;
  if (given.spinMicroseconds != 0)
    settings.device.spin = std::chrono::microseconds(given.spinMicroseconds);
  if (given.orderPolicy != 0)
    settings.device.order = static_cast<scheduler::OrderPolicy>(given.orderPolicy);
  if (given.budgetPolicy != 0)
    settings.device.budget = static_cast<scheduler::BudgetPolicy>(given.budgetPolicy);
  if (given.maxInFlight != 0)
    options.maxInFlight = given.maxInFlight;
  constexpr uint64_t kDefaultArenaBytes = 256 << 20;
  constexpr uint64_t kDefaultHeapBytes = 1 << 30;
  uint64_t arenaBytes = given.arenaBytes != 0 ? given.arenaBytes : kDefaultArenaBytes;
  settings.heapBytes = given.heapBytes != 0 ? given.heapBytes : kDefaultHeapBytes;
  if (given.deviceKind == occlDeviceCuda) {
    // The device is looked at before anything is made, so that a wrong number is an error here.
    Status usable = cuda::checkDevice(given.device);
    if (!usable.ok())
      return usable;
    settings.cuda.emplace();
    settings.cuda->device = given.device;
    // The device's memory holds arena and heap.
    settings.cuda->bytes = arenaBytes + settings.heapBytes;
    settings.cuda->arenaBytes = arenaBytes;
    settings.cuda->timeout = options.timeout;
    if (given.workers != 0)
      settings.cuda->executors = given.workers;
    if (given.strict != 0)
      settings.cuda->isStrict = given.strict == 1;
    if (given.streams != 0)
      settings.cuda->streams = given.streams;
    // Both are for tests of rare states.
    if (const char *first = std::getenv("OCCL_FIRST_CALL"))
      settings.cuda->firstCall = std::strtoull(first, nullptr, 10);
    if (const char *after = std::getenv("OCCL_LEAVE_AFTER_US"))
      settings.cuda->leaveAfter = std::strtoull(after, nullptr, 10) * 1000;
    settings.cuda->registeredBuffers = given.registeredBuffers != 0;
    settings.cuda->asNeeded = given.asNeeded != 0;
    if (given.maxThreadBlocks != 0)
      settings.cuda->mostBlocks = given.maxThreadBlocks;
    settings.device.workers.reset(); // of the device, not of the host
    options.isOnDevice = true;
    // The host's segment: an arena for what devices need, and a heap for their messages.
    settings.heapBytes = cuda::hostBytesForMessages(arenaBytes);
    arenaBytes = cuda::hostBytesForDevices();
  }
  settings.segmentBytes = transport::Segment::bytesFor(arenaBytes, settings.heapBytes);
  return settings;
}

std::unique_ptr<occlComm> startOn(std::shared_ptr<daemon::Device> device,
                                  std::unique_ptr<daemon::Fabric> fabric,
                                  const daemon::Options &options,
                                  std::unique_ptr<cuda::DeviceRank> gpu) {
  // Not at the first call.
  plan_library::PlanLibrary::ofProcess().prepare();
  return std::make_unique<occlComm>(
      std::make_unique<daemon::Daemon>(std::move(device), std::move(fabric), options), true,
      std::move(gpu));
}

/// On devices one after the other, from the first rank's on; all null without devices.
StatusOr<std::vector<std::unique_ptr<cuda::DeviceRank>>>
makeDeviceRanks(const std::vector<std::unique_ptr<daemon::Fabric>> &fabrics,
                const std::vector<std::shared_ptr<daemon::Device>> &devices,
                const Settings &settings) {
  std::vector<std::unique_ptr<cuda::DeviceRank>> ranks(fabrics.size());
  if (!settings.cuda)
    return ranks;
  // All ranks are made before the first connects: it maps memory of the others.
  for (uint32_t r = 0; r < fabrics.size(); ++r) {
    cuda::DeviceRankOptions options = *settings.cuda;
    // Ranks take the devices in turn, and share them if there are fewer.
    options.device = (options.device + r) % cuda::numDevices();
    options.scheduler = devices[r];
    auto made = cuda::makeDeviceRank(*fabrics[r], options);
    if (!made.ok())
      return made.status();
    ranks[r] = std::move(*made);
  }
  for (auto &rank : ranks)
    if (Status connected = rank->connect(); !connected.ok())
      return connected;
  return ranks;
}

/// The one of a process; null without devices.
StatusOr<std::unique_ptr<cuda::DeviceRank>>
joinDevices(daemon::Fabric &fabric, const std::shared_ptr<daemon::Device> &device,
            const Settings &settings, const Deadline &deadline) {
  if (!settings.cuda)
    return std::unique_ptr<cuda::DeviceRank>();
  cuda::DeviceRankOptions options = *settings.cuda;
  options.scheduler = device;
  auto rank = cuda::makeDeviceRank(fabric, options);
  if (!rank.ok())
    return rank.status();
  // All ranks are made before one maps the memory of others, and connected before one calls.
  Status status = fabric.meet(deadline);
  if (status.ok())
    status = (*rank)->connect();
  if (status.ok())
    status = fabric.meet(deadline);
  if (!status.ok())
    return status;
  return rank;
}

uint32_t orderOf(const daemon::Device &device) {
  return static_cast<uint32_t>(device.options.order);
}

StatusOr<std::vector<std::shared_ptr<daemon::Device>>>
makeDevices(uint32_t number, const daemon::DeviceRequest &request) {
  std::vector<std::shared_ptr<daemon::Device>> devices;
  for (uint32_t d = 0; d < number; ++d) {
    // Threads of one process need no shared page for the doorbell.
    auto device = daemon::makeDevice(request, false);
    if (!device.ok())
      return device.status();
    devices.push_back(std::move(*device));
  }
  return devices;
}

Status initAll(occlComm_t *comms, uint32_t numRanks, const occlConfig_t *config) {
  auto settings = settingsFrom(config);
  if (!settings.ok())
    return settings.status();
  // Each rank stands for a device of its own, so each has a scheduler.
  auto devices = makeDevices(numRanks, settings->device);
  if (!devices.ok())
    return devices.status();
  std::vector<std::shared_ptr<bootstrap::SharedBell>> bells;
  for (const auto &device : *devices)
    bells.push_back(device->sharedBell);
  // Segments first, all formatted before one is looked at by another rank.
  auto groups = bootstrap::formThreadGroup(bells, settings->segmentBytes);
  if (!groups.ok())
    return groups.status();
  std::vector<std::unique_ptr<daemon::Fabric>> fabrics;
  for (auto &group : *groups) {
    fabrics.push_back(std::make_unique<daemon::Fabric>(std::move(group), settings->heapBytes));
    Status formatted = fabrics.back()->format(orderOf(*(*devices)[fabrics.size() - 1]));
    if (!formatted.ok())
      return formatted;
  }
  for (auto &fabric : fabrics) {
    Status connected = fabric->connect();
    if (!connected.ok())
      return connected;
  }
  // Devices use the fabrics, and are made when these are complete.
  auto gpus = makeDeviceRanks(fabrics, *devices, *settings);
  if (!gpus.ok())
    return gpus.status();
  // All or none: the program hears of no handle if one cannot be had.
  const auto destroy = [](occlComm *comm) { occlCommDestroy(comm); };
  std::vector<std::unique_ptr<occlComm, decltype(destroy)>> started;
  started.reserve(numRanks);
  for (uint32_t r = 0; r < numRanks; ++r)
    started.emplace_back(
        startOn((*devices)[r], std::move(fabrics[r]), settings->options, std::move((*gpus)[r]))
            .release(),
        destroy);
  for (uint32_t r = 0; r < numRanks; ++r)
    comms[r] = started[r].release();
  return {};
}

/// By what the name says: ranks of this machine, or of several.
StatusOr<std::unique_ptr<bootstrap::Group>> formGroup(const bootstrap::Identity &identity,
                                                      const Settings &settings,
                                                      const daemon::Device &device,
                                                      const Deadline &deadline) {
  net::MachineGroupOptions options;
  options.numRanks = identity.numRanks;
  options.rank = identity.rank;
  options.name = identity.name;
  options.segmentBytes = settings.segmentBytes;
  // Rounded up, so that a deadline that is near does not become zero.
  options.timeout = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  options.job = bootstrap::jobFromEnvironment();
  options.restarts = bootstrap::restartsFromEnvironment();
  options.bell = device.sharedBell;
  // A plain name is for ranks of this machine.
  if (!net::isAddress(identity.name))
    return bootstrap::formProcessGroup(options);
  // Ranks of other machines are told of these, as they cannot look into the segment.
  options.heapBytes = settings.heapBytes;
  options.isOnDevice = settings.cuda.has_value();
  options.orderPolicy = orderOf(device);
  return net::formMachineGroup(options);
}

Status initRank(occlComm_t *comm, const bootstrap::Identity &identity, const occlConfig_t *config) {
  auto settings = settingsFrom(config);
  if (!settings.ok())
    return settings.status();
  // One deadline bounds the whole set-up.
  Deadline deadline(settings->options.setUpTimeout);
  // The place is kept to the end: another thread that forms the same communicator sees it.
  daemon::PlaceInProcess place(identity.name);
  auto device = place.device(settings->device);
  if (!device.ok())
    return device.status();
  auto group = formGroup(identity, *settings, **device, deadline);
  if (!group.ok())
    return group.status();
  auto fabric =
      daemon::makeFabric(std::move(*group), orderOf(**device), deadline, settings->heapBytes);
  if (!fabric.ok())
    return fabric.status();
  auto gpu = joinDevices(**fabric, *device, *settings, deadline);
  if (!gpu.ok())
    return gpu.status();
  *comm =
      startOn(std::move(*device), std::move(*fabric), settings->options, std::move(*gpu)).release();
  return {};
}

/// Of a communicator of ranks of another one: without a configuration, the other's. On the other's
/// device in any case.
StatusOr<Settings> settingsWithin(const occlComm &parent, const occlConfig_t *config) {
  auto settings = settingsFrom(config);
  if (!settings.ok())
    return settings;
  // A configuration is taken as a whole; without one the parent's settings are.
  if (!config) {
    settings->options = parent.daemon->options();
    settings->segmentBytes = parent.daemon->segmentBytes();
    settings->heapBytes = parent.daemon->heap().size();
    if (parent.gpu)
      settings->cuda = parent.gpu->settings();
  }
  // A communicator on hosts cannot become one on devices, or the other way round.
  if (settings->cuda.has_value() != (parent.gpu != nullptr))
    return invalid("config->deviceKind must be that of the communicator that is divided or shrunk");
  if (parent.gpu)
    settings->cuda->device = parent.gpu->settings().device;
  // Executors are shared with the parent and cannot be set anew.
  Status fits = daemon::checkSettings(settings->device, *parent.daemon->device());
  if (!fits.ok())
    return fits;
  return settings;
}

/// The handle of a communicator made of another one; its ranks meet if they are on devices.
Status join(std::unique_ptr<daemon::Daemon> daemon, const Settings &settings, occlComm_t *newComm) {
  auto gpu = joinDevices(daemon->fabric(), daemon->device(), settings,
                         Deadline(settings.options.setUpTimeout));
  if (!gpu.ok())
    return gpu.status();
  *newComm = new occlComm(std::move(daemon), false, std::move(*gpu));
  return {};
}

Status split(occlComm_t comm, int32_t colour, int32_t key, const occlConfig_t *config,
             occlComm_t *newComm) {
  auto settings = settingsWithin(*comm, config);
  if (!settings.ok())
    return settings.status();
  // Ranks without a colour take part in the division as well.
  auto divided = comm->daemon->split({colour, key, settings->segmentBytes, settings->heapBytes},
                                     settings->options);
  if (!divided.ok())
    return divided.status();
  // Without a colour there is no new communicator, and the handle stays null.
  return *divided ? join(std::move(*divided), *settings, newComm) : Status();
}

Status shrink(occlComm_t comm, std::span<const uint32_t> exclude, const occlConfig_t *config,
              occlComm_t *newComm) {
  auto settings = settingsWithin(*comm, config);
  if (!settings.ok())
    return settings.status();
  // Mark the ranks to leave out; a rank cannot leave out itself.
  daemon::ShrinkRequest request;
  request.excluded.resize(comm->daemon->numRanks(), false);
  for (uint32_t rank : exclude) {
    if (rank >= comm->daemon->numRanks() || rank == comm->daemon->rank())
      return {StatusCode::InvalidArgument,
              "exclude holds rank " + std::to_string(rank) +
                  (rank == comm->daemon->rank() ? ", which calls; a rank that is to be left out "
                                                  "destroys its communicator"
                                                : ", which there is not")};
    request.excluded[rank] = true;
  }
  request.segmentBytes = settings->segmentBytes;
  request.heapBytes = settings->heapBytes;
  request.timeout = settings->options.setUpTimeout;
  // Ranks agree on the ones that are left, and meet again without the others.
  auto smaller = comm->daemon->shrink(request, settings->options);
  if (!smaller.ok())
    return smaller.status();
  return join(std::move(*smaller), *settings, newComm);
}

} // namespace

occlResult_t occlCommInitAll(occlComm_t *comms, uint32_t numRanks, const occlConfig_t *config) {
  return guarded([&]() -> Status {
    if (!comms || numRanks == 0 || numRanks > bootstrap::kMaxRanks)
      return {StatusCode::InvalidArgument,
              "occlCommInitAll: comms must not be NULL and numRanks must be 1 to " +
                  std::to_string(bootstrap::kMaxRanks)};
    return initAll(comms, numRanks, config);
  });
}

occlResult_t occlCommInitRank(occlComm_t *comm, uint32_t numRanks, uint32_t rank, const char *name,
                              const occlConfig_t *config) {
  if (!comm || !name)
    return reportInvalid("occlCommInitRank", "comm and name must not be NULL");
  return guarded([&] { return initRank(comm, {rank, numRanks, name}, config); });
}

occlResult_t occlCommInitFromEnv(occlComm_t *comm, const occlConfig_t *config) {
  if (!comm)
    return reportInvalid("occlCommInitFromEnv", "comm must not be NULL");
  return guarded([&]() -> Status {
    auto identity = bootstrap::identityFromEnvironment();
    if (!identity.ok())
      return identity.status();
    return initRank(comm, *identity, config);
  });
}

occlResult_t occlCommSplit(occlComm_t comm, int32_t colour, int32_t key, const occlConfig_t *config,
                           occlComm_t *newComm) {
  if (!comm || !newComm)
    return reportInvalid("occlCommSplit", "comm and newComm must not be NULL");
  *newComm = nullptr;
  return guarded("occlCommSplit", comm, [&] { return split(comm, colour, key, config, newComm); });
}

occlResult_t occlCommShrink(occlComm_t comm, const uint32_t *exclude, uint32_t numExclude,
                            const occlConfig_t *config, occlComm_t *newComm) {
  if (!comm || !newComm || (!exclude && numExclude != 0))
    return reportInvalid("occlCommShrink", "comm, newComm and exclude must not be NULL");
  *newComm = nullptr;
  return guarded("occlCommShrink", comm,
                 [&] { return shrink(comm, std::span(exclude, numExclude), config, newComm); });
}

occlResult_t occlCommDestroy(occlComm_t comm) {
  // In a forked child there is nothing to end. The copy of its memory goes with the child: freeing
  // parts of it would need locks that threads of the parent may have held.
  if (comm && !comm->process.isThisProcess())
    return occlSuccess;
  // It would wait for the callback that it is called from.
  if (comm && (comm->daemon->isCallingBack() || (comm->gpu && comm->gpu->isCallingBack())))
    return reportInvalid("occlCommDestroy", "called from a callback of the same communicator");
  if (!comm)
    return occlSuccess;
  comm->daemon->drain(); // meanwhile it may be aborted
  if (comm->gpu)
    comm->gpu->drain();
  // An abort of another thread may still hold the handle.
  liveHandles().remove(comm);
  delete comm;
  return occlSuccess;
}

occlResult_t occlCommAbort(occlComm_t comm) {
  if (!comm || !liveHandles().hold(comm))
    return reportInvalid("occlCommAbort",
                         comm ? "this communicator has been destroyed, or belongs to the process "
                                "that forked this one"
                              : "comm must not be NULL");
  // While it is held, occlCommDestroy does not delete it.
  occlResult_t result = guarded([&]() -> Status {
    comm->daemon->fail({StatusCode::Aborted, "occlCommAbort was called on rank " +
                                                 std::to_string(comm->daemon->rank())});
    return {};
  });
  liveHandles().letGo(comm);
  return result;
}
