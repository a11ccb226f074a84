// Partitioned sends and receives, and what is done with all partitioned requests:
// occl_partitioned.h, and on devices occl_partitioned_device.h. call_api.cpp makes those of
// collectives.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/occl_partitioned.h"
#include "runtime/api/occl_partitioned_device.h"

#include "runtime/base/data_type.h"
#include "support/nvtx/ranges.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

using namespace occl;
using namespace occl::communicator;

namespace {

static_assert(OCCL_MAX_PARTITIONS == partitioned::kMostPartitions);

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// The program's arguments, which are signed so that wildcards and wrong results of computations
/// are seen for what they are.
struct Given {
  bool isSend;
  void *buffer;
  int64_t partitions;
  uint64_t count;
  occlDataType_t type;
  int64_t peer, tag;
  const occlPartConfig_t *config;
};

StatusOr<partitioned::Terms> termsOf(const Given &given) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  if (given.config && !copySized(config, given.config))
    return invalid("config->size is not set; use OCCL_PART_CONFIG_INITIALIZER");
  if (static_cast<unsigned>(given.type) >= kNumDataTypes)
    return invalid("dataType " + std::to_string(given.type) + " is unknown");
  if (given.partitions < 0)
    return invalid("partitions is " + std::to_string(given.partitions));
  // Negative ranks and tags are wildcards in MPI; there are none here.
  if (given.peer < 0 || given.peer > std::numeric_limits<uint32_t>::max())
    return invalid(std::string(given.isSend ? "destination" : "source") + " is " +
                   std::to_string(given.peer) +
                   "; there is no such rank, and there are no wildcards");
  if (given.tag < 0)
    return invalid("tag is " + std::to_string(given.tag) +
                   "; tags are not negative, and there are no wildcards");
  if (config.rounds != 0)
    return invalid("config->rounds is " + std::to_string(config.rounds) +
                   "; only collectives have rounds");
  // The sender decides how partitions are joined to messages; a receiver takes them as they come.
  const auto partitions = static_cast<uint64_t>(given.partitions);
  if (config.partitionsPerMessage > (given.isSend ? partitions : 0))
    return invalid("config->partitionsPerMessage is " +
                   std::to_string(config.partitionsPerMessage) +
                   (given.isSend ? " of " + std::to_string(partitions) + " partitions"
                                 : ", which the sender decides"));
  partitioned::Terms terms;
  terms.isSend = given.isSend;
  terms.peer = static_cast<uint32_t>(given.peer);
  terms.tag = static_cast<uint64_t>(given.tag);
  terms.shape = {partitions, given.count, static_cast<DataType>(given.type),
                 std::max<uint64_t>(config.partitionsPerMessage, 1)};
  terms.buffer = static_cast<char *>(given.buffer);
  return terms;
}

occlResult_t init(const char *function, occlComm_t comm, const Given &given, occlPart_t *part) {
  if (!comm || !part)
    return reportInvalid(function, comm ? "part must not be NULL" : "comm must not be NULL");
  return guarded(function, comm, [&]() -> Status {
    const auto terms = termsOf(given);
    if (!terms.ok())
      return terms.status();
    return makePart(*comm, part, [&](occlPart &handle) {
      handle.messages = terms->isSend ? terms->shape.numMessages() : 0;
      if (comm->gpu)
        return take(handle.onDevice, comm->gpu->makePart(*terms));
      // On hosts the request is matched with the peer's by notices, at once or later.
      return take(handle.request, comm->daemon->partitionedRequests().make(*terms));
    });
  });
}

/// call(requests, request) of a request on a host, of either kind.
template <class Call> Status callWith(const occlPart &part, Call call) {
  if (part.onDevice)
    return invalid("the request is of a communicator on devices (occlDeviceCuda): its epochs are "
                   "work of streams, see occlPstartOn, occlPreadyOn and occlPwaitOn");
  daemon::Daemon &daemon = *part.comm->daemon;
  return part.request ? call(daemon.partitionedRequests(), *part.request)
                      : call(daemon.partitionedCollectives(), *part.collective);
}

/// The same for what a program gives.
template <class Call> occlResult_t with(const char *function, occlPart_t part, Call call) {
  if (!part)
    return reportInvalid(function, "part must not be NULL");
  return guarded(function, part->comm, [&]() -> Status { return callWith(*part, call); });
}

/// call(request) of one on a device.
template <class Call> occlResult_t onDevice(const char *function, occlPart_t part, Call call) {
  if (!part)
    return reportInvalid(function, "part must not be NULL");
  return guarded(function, part->comm, [&]() -> Status {
    if (!part->onDevice)
      return invalid("the communicator is on hosts, where epochs are not work of streams: see "
                     "occlPstart, occlPready and occlPwait");
    return call(*part->onDevice);
  });
}

} // namespace

occlPart_t occl::communicator::addPart(occlComm &comm) {
  auto handle = std::make_unique<occlPart>();
  occlPart_t made = handle.get();
  made->comm = &comm;
  std::lock_guard lock(comm.partsMutex);
  comm.parts.emplace(made, std::move(handle));
  return made;
}

void occl::communicator::removePart(occlPart_t part) {
  occlComm &comm = *part->comm;
  std::lock_guard lock(comm.partsMutex);
  comm.parts.erase(part);
}

occlResult_t occlPsendInit(occlComm_t comm, const void *buffer, int64_t partitions, uint64_t count,
                           occlDataType_t dataType, int64_t destination, int64_t tag,
                           const occlPartConfig_t *config, occlPart_t *part) {
  return init(
      "occlPsendInit", comm,
      {true, const_cast<void *>(buffer), partitions, count, dataType, destination, tag, config},
      part);
}

occlResult_t occlPrecvInit(occlComm_t comm, void *buffer, int64_t partitions, uint64_t count,
                           occlDataType_t dataType, int64_t source, int64_t tag,
                           const occlPartConfig_t *config, occlPart_t *part) {
  return init("occlPrecvInit", comm,
              {false, buffer, partitions, count, dataType, source, tag, config}, part);
}

occlResult_t occlPquery(occlPart_t part, occlPartInfo_t *info) {
  occlPartInfo_t known = OCCL_PART_INFO_INITIALIZER;
  if (!part || !info || info->size < sizeof info->size)
    return reportInvalid("occlPquery", "part and info must not be NULL, and info->size must be "
                                       "set: use OCCL_PART_INFO_INITIALIZER");
  return guarded("occlPquery", part->comm, [&]() -> Status {
    known.rounds = part->rounds;
    // A receive on a host learns how its send is divided when they are matched.
    known.messages = part->request ? part->request->numMessages() : part->messages;
    known.arrivesEarly = known.rounds > 1 || known.messages > 1 ? 1 : 0;
    // An older caller's struct has room for the first fields only.
    known.size = std::min(info->size, sizeof known);
    std::memcpy(info, &known, known.size);
    return {};
  });
}

occlResult_t occlPstart(occlPart_t part) {
  return with("occlPstart", part,
              [](auto &requests, auto &request) { return requests.start(request); });
}

occlResult_t occlPprepare(occlPart_t part) {
  return with("occlPprepare", part,
              [](auto &requests, auto &request) { return requests.prepare(request); });
}

occlResult_t occlPready(occlPart_t part, int64_t partition) {
  return occlPreadyList(part, 1, &partition);
}

occlResult_t occlPreadyRange(occlPart_t part, int64_t first, int64_t last) {
  return with("occlPreadyRange", part, [&](auto &requests, auto &request) -> Status {
    // The end of the half-open range must not overflow.
    if (first < 0 || last < first || last == std::numeric_limits<int64_t>::max())
      return invalid("there are no partitions " + std::to_string(first) + " to " +
                     std::to_string(last));
    // The program's last partition is included, the library's end is not.
    return requests.ready(request, {static_cast<uint64_t>(first), static_cast<uint64_t>(last) + 1});
  });
}

occlResult_t occlPreadyList(occlPart_t part, uint64_t number, const int64_t *partitions) {
  return with("occlPreadyList", part, [&](auto &requests, auto &request) -> Status {
    if (!partitions && number != 0)
      return invalid("partitions is NULL");
    return requests.ready(request, std::span(partitions, number));
  });
}

occlResult_t occlParrived(occlPart_t part, int64_t partition, int32_t *arrived) {
  return with("occlParrived", part, [&](auto &requests, auto &request) -> Status {
    if (!arrived)
      return invalid("arrived must not be NULL");
    // The program's variable stays as it is if this fails.
    const auto found = requests.arrived(request, partition);
    if (found.ok())
      *arrived = *found ? 1 : 0;
    return found.status();
  });
}

occlResult_t occlPtest(occlPart_t part) {
  return with("occlPtest", part,
              [](auto &requests, auto &request) { return requests.test(request); });
}

occlResult_t occlPwait(occlPart_t part) {
  return with("occlPwait", part, [](auto &requests, auto &request) {
    const nvtx::Range range([] { return nvtx::Named{"occlPwait", 0, 0}; });
    return requests.wait(request);
  });
}

occlResult_t occlPfree(occlPart_t part) {
  if (!part)
    return occlSuccess;
  return guarded("occlPfree", part->comm, [&]() -> Status {
    // A request that is still in use keeps its handle.
    Status freed = part->onDevice ? part->onDevice->release()
                                  : callWith(*part, [](auto &requests, auto &request) {
                                      return requests.release(request);
                                    });
    if (!freed.ok())
      return freed;
    removePart(part);
    return {};
  });
}

// --- as work of streams ---

occlResult_t occlPstartOn(occlPart_t part, void *stream) {
  return onDevice("occlPstartOn", part,
                  [&](cuda::DevicePart &request) { return request.start(stream); });
}

occlResult_t occlPreadyOn(occlPart_t part, int64_t first, int64_t last, void *stream) {
  return onDevice("occlPreadyOn", part, [&](cuda::DevicePart &request) -> Status {
    if (first < 0 || last < first || last >= OCCL_MAX_PARTITIONS)
      return invalid("there are no partitions " + std::to_string(first) + " to " +
                     std::to_string(last));
    return request.mark({static_cast<uint64_t>(first), static_cast<uint64_t>(last) + 1}, stream);
  });
}

occlResult_t occlPprepareOn(occlPart_t part, void *stream) {
  return onDevice("occlPprepareOn", part,
                  [&](cuda::DevicePart &request) { return request.prepare(stream); });
}

occlResult_t occlPwaitOn(occlPart_t part, void *stream) {
  return onDevice("occlPwaitOn", part, [&](cuda::DevicePart &request) {
    const nvtx::Range range([] { return nvtx::Named{"occlPwaitOn", 0, 0}; });
    return request.wait(stream);
  });
}

occlResult_t occlPdevice(occlPart_t part, occlPartDevice_t *handle) {
  return onDevice("occlPdevice", part, [&](cuda::DevicePart &request) -> Status {
    if (!handle)
      return invalid("handle must not be NULL");
    handle->state = request.state();
    return {};
  });
}

occlResult_t occlPdevicePointer(occlPart_t part, void **pointer) {
  return onDevice("occlPdevicePointer", part, [&](cuda::DevicePart &request) -> Status {
    if (!pointer)
      return invalid("pointer must not be NULL");
    *pointer = request.state();
    return {};
  });
}
