// Communicators of another one's ranks and of new ones. The ranks that there are all know the id of
// what it grows to; one of them, whose program gives it to the new ranks, serves it.
#include "nccl/abi/exports.h"
#include "nccl/abi/later.h"
#include "nccl/base/environment.h"
#include "nccl/calls/group.h"
#include "nccl/comm/division.h"
#include "nccl/comm/init.h"
#include "nccl/fallback/setting.h"
#include "nccl/streams/host_streams.h"

#include <cstring>

namespace occl::nccl {

namespace {

constexpr const char *kGrown = "grown";

/// Of the id that the rank that calls this is the root of, for its ranks and new ones.
Outcome idOfNext(Comm &parent, ncclUniqueId *id) {
  if (!id)
    return invalidArgument("uniqueId must not be NULL");
  Executor of;
  if (Outcome outcome = parent.forCall(of); !outcome.ok())
    return outcome;
  if (of.other) {
    const OtherNccl &nccl = of.other->nccl;
    return nccl.ncclCommGetUniqueId
               ? of.other->settle(nccl.ncclCommGetUniqueId(of.other->handle(), id))
               : invalidUsage(nccl.title() + ", which has the communicator, has no "
                                             "ncclCommGetUniqueId");
  }
  IdLayout layout = parent.lineage.child(nextOf(kGrown, parent.numGrown)).id();
  if (Outcome outcome = serveId(layout); !outcome.ok())
    return outcome;
  std::memcpy(id, &layout, sizeof(*id));
  return {};
}

/// A rank of the communicator that grows, which keeps its number.
Outcome growFrom(Comm &parent, int numRanks, const ncclUniqueId *given, int rank,
                 ncclComm_t *handle, const ncclConfig_t *config) {
  uint32_t before = 0, own = 0;
  if (Outcome outcome = parent.shape(before, own); !outcome.ok())
    return outcome;
  if (rank != -1 && rank != static_cast<int>(own))
    return invalidArgument("rank is " + std::to_string(rank) +
                           ", must be -1: a rank of comm, this "
                           "is " +
                           std::to_string(own) + ", keeps its number");
  if (numRanks <= static_cast<int>(before))
    return invalidArgument("nRanks is " + std::to_string(numRanks) + ", must be more than the " +
                           std::to_string(before) + " that comm has");
  FallbackSetting fallback;
  if (Outcome outcome = readFallbackSetting(fallback); !outcome.ok())
    return outcome;
  const auto size = static_cast<uint32_t>(numRanks);
  const auto id = given ? std::optional(*given) : std::nullopt;
  return beginDivision(
      parent, config, handle, kGrown, parent.numGrown,
      [=](Comm &, const Executor &of, Comm &to, Executor &made) -> Outcome {
        if (of.other)
          return OtherComm::grow(of.other->nccl, of.other->handle(), numRanks, id, -1, to.config,
                                 endOf(to), made.other);
        const IdLayout expected = to.lineage.id();
        IdLayout layout{};
        if (id)
          if (Outcome outcome = readUniqueId(*id, layout); !outcome.ok())
            return outcome;
        if (id && layout.name != expected.name)
          return invalidArgument("uniqueId is not what ncclCommGetUniqueId has made for the next "
                                 "ncclCommGrow of this communicator");
        return joinRanks({expected, size, own, wishForOther(fallback, size), &to, true}, true,
                         made);
      });
}

/// A rank that has no communicator yet; the others' is the other library's.
Outcome growWithOther(int numRanks, const ncclUniqueId &id, int rank, ncclComm_t *handle,
                      const ncclConfig_t *given) {
  const OtherNccl *nccl = nullptr;
  if (Outcome outcome = openOther(nccl); !outcome.ok())
    return invalidArgument("the id is not one of OCCL's, nor another NCCL's: " + outcome.text);
  Config config;
  if (Outcome outcome = readConfig(given, config); !outcome.ok())
    return outcome;
  int device = 0;
  if (Outcome outcome = streams().currentDevice(device); !outcome.ok())
    return outcome;
  auto comm = std::make_shared<Comm>(config, device);
  if (isHostMode())
    comm->ownStream = HostStream::make();
  comm->setShape(static_cast<uint32_t>(numRanks), static_cast<uint32_t>(rank));
  Outcome begun = comm->begin([=, to = comm.get()](Executor &made) {
    Outcome outcome = streams().makeCurrent(device);
    if (outcome.ok())
      outcome =
          OtherComm::grow(*nccl, nullptr, numRanks, id, rank, to->config, endOf(*to), made.other);
    if (outcome.ok())
      noteUse(static_cast<uint32_t>(numRanks), static_cast<uint32_t>(rank), device,
              "the communicator that has grown is that library's");
    return outcome;
  });
  if (begun.ok())
    *handle = addHandle(comm);
  return begun;
}

/// A rank that has no communicator yet.
Outcome growInto(int numRanks, const ncclUniqueId *id, int rank, ncclComm_t *handle,
                 const ncclConfig_t *config) {
  if (!id)
    return invalidArgument("without comm, uniqueId is what ncclCommGetUniqueId has made on a rank "
                           "of the communicator that grows; it must not be NULL");
  if (numRanks < 2 || rank < 1 || rank >= numRanks)
    return invalidArgument("rank is " + std::to_string(rank) + ", nRanks " +
                           std::to_string(numRanks) +
                           ": new ranks have the numbers behind those "
                           "of the communicator that grows, up to nRanks - 1");
  IdLayout layout{};
  return readUniqueId(*id, layout).ok() ? initRank(handle, numRanks, *id, rank, config)
                                        : growWithOther(numRanks, *id, rank, handle, config);
}

} // namespace

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
  return withComm("ncclCommGetUniqueId", comm, [&](Comm &of) { return idOfNext(of, id); });
}
OCCL_NCCL_SECOND_NAME(ncclCommGetUniqueId);

ncclResult_t ncclCommGrow(ncclComm_t comm, int numRanks, const ncclUniqueId *id, int rank,
                          ncclComm_t *newComm, ncclConfig_t *config) {
  return inGroup(guarded("ncclCommGrow", [&]() -> Outcome {
    if (!newComm)
      return invalidArgument("newcomm must not be NULL");
    *newComm = nullptr;
    if (!comm)
      return growInto(numRanks, id, rank, newComm, config);
    std::shared_ptr<Comm> parent;
    Outcome found = find(comm, parent);
    return found.ok() ? growFrom(*parent, numRanks, id, rank, newComm, config) : found;
  }));
}
OCCL_NCCL_SECOND_NAME(ncclCommGrow);
