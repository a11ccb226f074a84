// Collectives registered on devices.
#include "runtime/communicator/error.h"
#include "runtime/communicator/handles.h"
#include "runtime/communicator/occl_registered.h"
#include "runtime/communicator/user_callback.h"

#include "runtime/base/data_type.h"

#include <chrono>
#include <utility>

using namespace occl;
using namespace occl::communicator;

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// The first version that is meant for this many bytes.
const occlPlan *choosePlan(const occlCollective_t &collective, uint64_t bytes) {
  for (uint32_t p = 0; p < collective.numPlans; ++p) {
    const plan::Plan &plan = *collective.plans[p]->plan;
    if (plan.minBytes <= bytes && bytes <= plan.maxBytes)
      return collective.plans[p];
  }
  return nullptr;
}

/// "0 to 4095, 65536 and more": what the plans are meant for, in their order.
std::string sizesOfPlans(const occlCollective_t &collective) {
  constexpr uint32_t kShown = 8;
  std::string sizes;
  for (uint32_t p = 0; p < collective.numPlans && p < kShown; ++p) {
    const plan::Plan &plan = *collective.plans[p]->plan;
    sizes += (p == 0 ? "" : ", ") + std::to_string(plan.minBytes);
    sizes += plan.maxBytes == UINT64_MAX ? " and more" : " to " + std::to_string(plan.maxBytes);
  }
  return collective.numPlans > kShown ? sizes + ", ..." : sizes;
}

Status checkCollective(const occlCollective_t &given) {
  if (!given.plans || given.numPlans == 0)
    return invalid("a collective needs at least one plan");
  for (uint32_t p = 0; p < given.numPlans; ++p)
    if (!given.plans[p])
      return invalid("plans[" + std::to_string(p) + "] is NULL");
  return checkArguments(given.dataType, given.op, given.count, given.callbacksNeverBlock);
}

StatusOr<daemon::CollectiveSpec> specFrom(const occlCollective_t &given) {
  Status checked = checkCollective(given);
  if (!checked.ok())
    return checked;
  auto type = static_cast<DataType>(given.dataType);
  const occlPlan *chosen = choosePlan(given, given.count * sizeOf(type));
  if (!chosen)
    return invalid("none of the " + std::to_string(given.numPlans) + " plans is meant for " +
                   std::to_string(given.count * sizeOf(type)) + " bytes, but for " +
                   sizesOfPlans(given));
  daemon::CollectiveSpec spec;
  spec.id = given.id;
  spec.name = given.name ? given.name : "";
  spec.plan = chosen->plan;
  spec.planHash = chosen->hash;
  spec.count = given.count;
  spec.type = type;
  spec.op = static_cast<ReduceOp>(given.op);
  spec.priority = given.priority;
  spec.timeout = timeoutOf(given.timeoutMs);
  spec.callbacksNeverBlock = given.callbacksNeverBlock != 0;
  return spec;
}

/// Runs body(device rank) as the function of this name, if the communicator is on devices.
template <typename Body> occlResult_t onDevice(const char *function, occlComm_t comm, Body body) {
  if (!comm)
    return reportInvalid(function, "comm must not be NULL");
  return guarded(function, comm, [&]() -> Status {
    if (!comm->gpu)
      return invalid("collectives are registered on communicators with deviceKind occlDeviceCuda "
                     "only; on hosts use occlCall and occlStart, which need no registration");
    return body(*comm->gpu);
  });
}

daemon::Callback callbackOf(occlCallback_t callback, void *user) {
  return callback ? wrapped(callback, user) : daemon::Callback();
}

/// Gives the caller the request of what was submitted.
Status take(const StatusOr<daemon::RequestId> &submitted, occlRequest_t *request) {
  if (!submitted.ok())
    return submitted.status();
  if (request)
    *request = *submitted;
  return {};
}

} // namespace

occlResult_t occlRegister(occlComm_t comm, const occlCollective_t *collective) {
  return onDevice("occlRegister", comm, [&](cuda::DeviceRank &gpu) -> Status {
    occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
    if (!collective || !copySized(given, collective))
      return invalid("collective must not be NULL, and collective->size must be set; start from "
                     "OCCL_COLLECTIVE_INITIALIZER");
    auto spec = specFrom(given);
    if (!spec.ok())
      return spec.status();
    return gpu.add(*spec);
  });
}

occlResult_t occlDeregister(occlComm_t comm, uint64_t id) {
  return onDevice("occlDeregister", comm, [&](cuda::DeviceRank &gpu) { return gpu.remove(id); });
}

occlResult_t occlSubmit(occlComm_t comm, uint64_t id, const void *sendBuffer, void *recvBuffer,
                        occlCallback_t callback, void *user, occlRequest_t *request) {
  return onDevice("occlSubmit", comm, [&](cuda::DeviceRank &gpu) -> Status {
    if (!callback && !request)
      return invalid("callback and request must not both be NULL");
    return take(gpu.submit(id, sendBuffer, recvBuffer, callbackOf(callback, user)), request);
  });
}

occlResult_t occlSubmitOnStream(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                void *recvBuffer, CUstream_st *stream, occlCallback_t callback,
                                void *user, occlRequest_t *request) {
  return onDevice("occlSubmitOnStream", comm, [&](cuda::DeviceRank &gpu) -> Status {
    return take(gpu.submitOnStream(id, sendBuffer, recvBuffer, stream, callbackOf(callback, user)),
                request);
  });
}

occlResult_t occlRun(occlComm_t comm, uint64_t id, const void *sendBuffer, void *recvBuffer) {
  return onDevice("occlRun", comm, [&](cuda::DeviceRank &gpu) -> Status {
    auto submitted = gpu.submit(id, sendBuffer, recvBuffer, {});
    return submitted.ok() ? gpu.wait(*submitted) : submitted.status();
  });
}
