// Partitioned requests as work of streams: occl_partitioned_device.h.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/occl_partitioned_device.h"

#include "support/nvtx/ranges.h"

#include <string>

using namespace occl;
using namespace occl::communicator;

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// call(requests, request) of a request on a device.
template <class Call> occlResult_t with(const char *function, occlPart_t part, Call call) {
  if (!part)
    return reportInvalid(function, "part must not be NULL");
  return guarded(function, part->comm, [&]() -> Status {
    if (!part->onDevice)
      return invalid(part->comm->gpu
                         ? "partitioned collectives are on hosts alone yet"
                         : "the communicator is on hosts, where epochs are not work of streams: "
                           "see occlPstart, occlPready and occlPwait");
    return call(part->comm->gpu->parts(), *part->onDevice);
  });
}

} // namespace

occlResult_t occlPstartOn(occlPart_t part, void *stream) {
  return with("occlPstartOn", part,
              [&](auto &requests, auto &request) { return requests.start(request, stream); });
}

occlResult_t occlPreadyOn(occlPart_t part, int64_t first, int64_t last, void *stream) {
  return with("occlPreadyOn", part, [&](auto &requests, auto &request) -> Status {
    if (first < 0 || last < first || last >= OCCL_MAX_PARTITIONS)
      return invalid("there are no partitions " + std::to_string(first) + " to " +
                     std::to_string(last));
    return requests.mark(request, {static_cast<uint64_t>(first), static_cast<uint64_t>(last) + 1},
                         stream);
  });
}

occlResult_t occlPprepareOn(occlPart_t part, void *stream) {
  return with("occlPprepareOn", part,
              [&](auto &requests, auto &request) { return requests.prepare(request, stream); });
}

occlResult_t occlPwaitOn(occlPart_t part, void *stream) {
  return with("occlPwaitOn", part, [&](auto &requests, auto &request) {
    const nvtx::Range range([] { return nvtx::Named{"occlPwaitOn", 0, 0}; });
    return requests.wait(request, stream);
  });
}

occlResult_t occlPdevice(occlPart_t part, occlPartDevice_t *handle) {
  return with("occlPdevice", part, [&](auto &requests, auto &request) -> Status {
    if (!handle)
      return invalid("handle must not be NULL");
    handle->state = requests.stateOf(request);
    return {};
  });
}
