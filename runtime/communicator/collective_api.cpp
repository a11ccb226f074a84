#include "runtime/communicator/error.h"
#include "runtime/communicator/handles.h"
#include "runtime/communicator/user_callback.h"

#include "runtime/base/data_type.h"

#include <chrono>
#include <exception>
#include <utility>

using namespace occl;
using namespace occl::communicator;

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

constexpr uint32_t kMaxStayMicroseconds = 10000;

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
  if (static_cast<unsigned>(given.dataType) >= kNumDataTypes)
    return invalid("dataType " + std::to_string(given.dataType) + " is unknown");
  if (static_cast<unsigned>(given.op) >= kNumReduceOps)
    return invalid("op " + std::to_string(given.op) + " is unknown");
  if (given.callbacksNeverBlock > 1)
    return invalid("callbacksNeverBlock must be 0 or 1");
  if (given.stayMicroseconds > kMaxStayMicroseconds)
    return invalid("stayMicroseconds must be at most 10000");
  return {};
}

StatusOr<daemon::CollectiveSpec> specFrom(const occlCollective_t &given) {
  Status checked = checkCollective(given);
  if (!checked.ok())
    return checked;
  auto type = static_cast<DataType>(given.dataType);
  constexpr uint64_t kMaxCount = uint64_t{1} << 58;
  if (given.count > kMaxCount)
    return invalid("count " + std::to_string(given.count) + " is more than 2^58");
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
  spec.timeout =
      given.timeoutMs == OCCL_NO_TIMEOUT ? kNoDeadline : std::chrono::milliseconds(given.timeoutMs);
  spec.callbacksNeverBlock = given.callbacksNeverBlock != 0;
  return spec;
}

/// The one place that knows the type of the user's function.
Status callBack(void (*function)(), daemon::RequestId request, StatusCode result, void *user) {
  try {
    reinterpret_cast<occlCallback_t>(function)(request, static_cast<occlResult_t>(result), user);
    return {};
  } catch (const std::exception &error) {
    return {StatusCode::CallbackFailed, error.what()};
  } catch (...) {
    return {StatusCode::CallbackFailed, "something that is not a std::exception"};
  }
}

} // namespace

daemon::Callback occl::communicator::wrapped(occlCallback_t callback, void *user) {
  return {callBack, reinterpret_cast<void (*)()>(callback), user};
}

occlResult_t occlRegister(occlComm_t comm, const occlCollective_t *collective) {
  if (!comm || !collective)
    return reportInvalid("occlRegister", "comm and collective must not be NULL");
  return guarded("occlRegister", comm, [&]() -> Status {
    occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
    if (!copySized(given, collective))
      return invalid("collective->size is not set; start from OCCL_COLLECTIVE_INITIALIZER");
    auto spec = specFrom(given);
    if (!spec.ok())
      return spec.status();
    if (comm->gpu)
      return comm->gpu->add(*spec, std::chrono::microseconds(given.stayMicroseconds));
    if (given.stayMicroseconds != 0)
      return invalid("stayMicroseconds needs a communicator with deviceKind occlDeviceCuda");
    return comm->daemon->add(std::move(*spec));
  });
}

occlResult_t occlDeregister(occlComm_t comm, uint64_t id) {
  if (!comm)
    return reportInvalid("occlDeregister", "comm must not be NULL");
  return guarded("occlDeregister", comm,
                 [&] { return comm->gpu ? comm->gpu->remove(id) : comm->daemon->remove(id); });
}

occlResult_t occlSubmit(occlComm_t comm, uint64_t id, const void *sendBuffer, void *recvBuffer,
                        occlCallback_t callback, void *user, occlRequest_t *request) {
  if (!comm || (!callback && !request))
    return reportInvalid("occlSubmit", "comm must not be NULL, nor callback and request both");
  return guarded("occlSubmit", comm, [&]() -> Status {
    daemon::Callback wrapped;
    if (callback)
      wrapped = communicator::wrapped(callback, user);
    auto submitted = comm->gpu ? comm->gpu->submit(id, sendBuffer, recvBuffer, wrapped)
                               : comm->daemon->submit(id, sendBuffer, recvBuffer, wrapped);
    if (!submitted.ok())
      return submitted.status();
    if (request)
      *request = *submitted;
    return {};
  });
}

occlResult_t occlSubmitOnStream(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                void *recvBuffer, CUstream_st *stream, occlCallback_t callback,
                                void *user, occlRequest_t *request) {
  if (!comm || !comm->gpu)
    return reportInvalid("occlSubmitOnStream",
                         comm ? "needs a communicator with deviceKind occlDeviceCuda"
                              : "comm must not be NULL");
  if (stream == OCCL_NO_STREAM)
    return reportInvalid("occlSubmitOnStream", "needs a stream");
  return guarded("occlSubmitOnStream", comm, [&]() -> Status {
    daemon::Callback wrapped;
    if (callback)
      wrapped = communicator::wrapped(callback, user);
    auto submitted = comm->gpu->submitOnStream(id, sendBuffer, recvBuffer, stream, wrapped);
    if (!submitted.ok())
      return submitted.status();
    if (request)
      *request = *submitted;
    return {};
  });
}

occlResult_t occlEnqueue(occlComm_t comm, uint64_t id, const void *sendBuffer, void *recvBuffer,
                         CUstream_st *stream) {
  if (!comm || !comm->gpu)
    return reportInvalid("occlEnqueue", comm ? "needs a communicator with deviceKind occlDeviceCuda"
                                             : "comm must not be NULL");
  if (stream == OCCL_NO_STREAM)
    return reportInvalid("occlEnqueue", "needs a stream");
  return guarded("occlEnqueue", comm,
                 [&] { return comm->gpu->enqueue(id, sendBuffer, recvBuffer, stream); });
}

occlResult_t occlEnqueueAndWait(occlComm_t comm, uint64_t id, const void *sendBuffer,
                                void *recvBuffer, CUstream_st *stream) {
  if (!comm || !comm->gpu)
    return reportInvalid("occlEnqueueAndWait",
                         comm ? "needs a communicator with deviceKind occlDeviceCuda"
                              : "comm must not be NULL");
  return guarded("occlEnqueueAndWait", comm, [&] {
    return stream == OCCL_NO_STREAM ? comm->gpu->call(id, sendBuffer, recvBuffer)
                                    : comm->gpu->enqueueAndWait(id, sendBuffer, recvBuffer, stream);
  });
}

occlResult_t occlWait(occlComm_t comm, occlRequest_t request) {
  if (!comm)
    return reportInvalid("occlWait", "comm must not be NULL");
  return guarded("occlWait", comm, [&] {
    return comm->gpu ? comm->gpu->wait(request) : comm->daemon->wait(request);
  });
}

occlResult_t occlRun(occlComm_t comm, uint64_t id, const void *sendBuffer, void *recvBuffer) {
  if (!comm)
    return reportInvalid("occlRun", "comm must not be NULL");
  return guarded("occlRun", comm, [&]() -> Status {
    if (!comm->gpu)
      return comm->daemon->run(id, sendBuffer, recvBuffer);
    auto submitted = comm->gpu->submit(id, sendBuffer, recvBuffer, {});
    return submitted.ok() ? comm->gpu->wait(*submitted) : submitted.status();
  });
}

occlResult_t occlTest(occlComm_t comm, occlRequest_t request) {
  if (!comm)
    return reportInvalid("occlTest", "comm must not be NULL");
  return guarded("occlTest", comm, [&] {
    return comm->gpu ? comm->gpu->test(request) : comm->daemon->test(request);
  });
}
