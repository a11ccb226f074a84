// How communicators come into being: at once, for the caller. Ranks come together in the
// background, so that no order in which ranks make communicators can be a wrong one.
#include "nccl/abi/exports.h"
#include "nccl/comm.h"
#include "nccl/environment.h"
#include "nccl/group.h"
#include "nccl/streams/host_streams.h"
#include "nccl/streams/streams.h"
#include "nccl/unique_id.h"

#include <utility>

namespace occl::nccl {

namespace {

/// What OCCL is told. Waiting for ranks has no deadline that matters: 49 days.
occlConfig_t occlConfig(int device) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = OCCL_NO_TIMEOUT - 1;
  config.heapBytes = 1 << 20; // nothing here is of occlMemAlloc
  streams().configure(config, device);
  return config;
}

Outcome initRank(ncclComm_t *handle, int numRanks, const ncclUniqueId &id, int rank,
                 const ncclConfig_t *given, std::optional<int> onDevice = std::nullopt) {
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
  std::string name;
  if (Outcome outcome = nameOf(id, name); !outcome.ok())
    return outcome;
  int device = onDevice.value_or(0);
  if (!onDevice)
    if (Outcome outcome = streams().currentDevice(device); !outcome.ok())
      return outcome;
  auto comm = std::make_shared<Comm>(config, device);
  if (isHostMode())
    comm->ownStream = HostStream::make();
  comm->setShape(static_cast<uint32_t>(numRanks), static_cast<uint32_t>(rank));
  Outcome begun = comm->begin([=](occlComm_t &made) {
    const occlConfig_t with = occlConfig(device);
    return outcomeOf(occlCommInitRank(&made, static_cast<uint32_t>(numRanks),
                                      static_cast<uint32_t>(rank), name.c_str(), &with));
  });
  if (!begun.ok())
    return begun;
  *handle = addHandle(comm);
  log(LogLevel::Info, "rank " + std::to_string(rank) + " of " + std::to_string(numRanks) +
                          ", device " + std::to_string(device) + ", id " + name);
  return {};
}

Outcome initAll(ncclComm_t *handles, int numDevices, const int *devices) {
  if (!handles)
    return invalidArgument("comm must not be NULL");
  int present = 0;
  if (Outcome outcome = streams().numDevices(present); !outcome.ok())
    return outcome;
  if (numDevices < 1 || (!devices && numDevices > present))
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

/// A communicator made of `parent` by divide(parent's, the new one's), in parent's next turn.
template <class Divide>
Outcome beginDivision(Comm &parent, const ncclConfig_t *given, ncclComm_t *handle, Divide divide) {
  Config config = parent.config;
  if (Outcome outcome = readConfig(given, config); !outcome.ok())
    return outcome;
  auto comm = std::make_shared<Comm>(config, parent.device);
  comm->ownStream = parent.ownStream;
  const Comm::Turn turn = parent.nextDivision();
  Outcome begun = comm->begin([turn, divide](occlComm_t &made) {
    occlComm_t of = nullptr;
    turn.await();
    Outcome outcome = turn.comm->connected(of);
    if (outcome.ok())
      outcome = divide(*turn.comm, of, made);
    turn.end();
    return outcome;
  });
  if (!begun.ok()) {
    turn.await(); // later divisions go on
    turn.end();
    return begun;
  }
  if (handle)
    *handle = addHandle(comm);
  return {};
}

Outcome split(Comm &parent, int colour, int key, ncclComm_t *handle, const ncclConfig_t *given) {
  if (!handle)
    return invalidArgument("newcomm must not be NULL");
  *handle = nullptr;
  if (colour < 0 && colour != NCCL_SPLIT_NOCOLOR)
    return invalidArgument("color is " + std::to_string(colour) +
                           ", must be NCCL_SPLIT_NOCOLOR or not negative");
  // A rank without colour takes part, and has no communicator from it.
  return beginDivision(parent, given, colour == NCCL_SPLIT_NOCOLOR ? nullptr : handle,
                       [=](Comm &, occlComm_t of, occlComm_t &made) {
                         return outcomeOf(occlCommSplit(of, colour, key, nullptr, &made));
                       });
}

Outcome shrink(Comm &parent, const int *excluded, int numExcluded, ncclComm_t *handle,
               const ncclConfig_t *given, int flags) {
  if (!handle)
    return invalidArgument("newcomm must not be NULL");
  *handle = nullptr;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    return invalidArgument("shrinkFlags is " + std::to_string(flags) +
                           ", neither NCCL_SHRINK_DEFAULT nor NCCL_SHRINK_ABORT");
  if (numExcluded < 1 || !excluded)
    return invalidArgument("excludeRanksList names the ranks to leave out, one at least");
  uint32_t numRanks = 0, rank = 0;
  if (Outcome outcome = parent.shape(numRanks, rank); !outcome.ok())
    return outcome;
  std::vector<uint32_t> without;
  for (int i = 0; i < numExcluded; ++i) {
    const auto other = static_cast<uint32_t>(excluded[i]);
    if (excluded[i] < 0 || other >= numRanks || other == rank)
      return invalidArgument("excludeRanksList has rank " + std::to_string(excluded[i]) +
                             (other == rank ? ", which calls" : ", which there is not"));
    without.push_back(other);
  }
  return beginDivision(
      parent, given, handle, [=](Comm &old, occlComm_t of, occlComm_t &made) -> Outcome {
        if (flags == NCCL_SHRINK_ABORT)
          if (Outcome ended = old.endOperations(); !ended.ok())
            return ended;
        return outcomeOf(occlCommShrink(of, without.data(), static_cast<uint32_t>(without.size()),
                                        nullptr, &made));
      });
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

ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *newComm,
                           ncclConfig_t *config) {
  return inGroup(withComm("ncclCommSplit", comm,
                          [&](Comm &of) { return split(of, colour, key, newComm, config); }));
}
OCCL_NCCL_SECOND_NAME(ncclCommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int numExcluded, ncclComm_t *newComm,
                            ncclConfig_t *config, int flags) {
  return inGroup(withComm("ncclCommShrink", comm, [&](Comm &of) {
    return shrink(of, excluded, numExcluded, newComm, config, flags);
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommShrink);
