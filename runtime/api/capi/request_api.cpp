// Requests: what occlStart has started, waited for or tested, and its callbacks.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/capi/transfer_group.h"
#include "runtime/api/capi/user_callback.h"
#include "support/nvtx/ranges.h"

#include <exception>
#include <new>

using namespace occl;
using namespace occl::communicator;

namespace {

/// With as much of the text as there is memory for.
Status failed(const char *what) {
  try {
    return {StatusCode::CallbackFailed, what};
  } catch (const std::bad_alloc &) {
    return {StatusCode::CallbackFailed, {}};
  }
}

/// The one place that knows the type of the user's function. It may be called inside of a group of
/// the thread that completes a collective, and is outside of it.
Status callBack(void (*function)(), daemon::RequestId request, StatusCode result, void *user) {
  TransferGroup::Outside outside;
  try {
    reinterpret_cast<occlCallback_t>(function)(request, static_cast<occlResult_t>(result), user);
    // A group that the callback has left open must not take in the thread's own transfers.
    if (outside.hasLeftOne())
      return failed("it has not ended a group that it has begun");
    return {};
  } catch (const std::exception &error) {
    // An exception must not unwind the executor that runs the callback.
    return failed(error.what());
  } catch (...) {
    return failed("something that is not a std::exception");
  }
}

} // namespace

daemon::Callback occl::communicator::wrapped(occlCallback_t callback, void *user) {
  // A Callback has room for any plain function; callBack() casts it back.
  return {callBack, reinterpret_cast<void (*)()>(callback), user};
}

occlResult_t occlStreamWait(occlComm_t comm, occlRequest_t request, CUstream_st *stream) {
  if (!comm)
    return reportInvalid("occlStreamWait", "comm must not be NULL");
  return guarded("occlStreamWait", comm, [&]() -> Status {
    if (!comm->gpu)
      return {StatusCode::InvalidArgument, "the communicator is on hosts, where no streams are"};
    return comm->gpu->holdStream(stream, request);
  });
}

occlResult_t occlWait(occlComm_t comm, occlRequest_t request) {
  if (!comm)
    return reportInvalid("occlWait", "comm must not be NULL");
  return guarded("occlWait", comm, [&] {
    const nvtx::Range range([&] { return nvtx::Named{"occlWait", comm->category, 0}; });
    return comm->gpu ? comm->gpu->wait(request) : comm->daemon->wait(request);
  });
}

occlResult_t occlTest(occlComm_t comm, occlRequest_t request) {
  if (!comm)
    return reportInvalid("occlTest", "comm must not be NULL");
  return guarded("occlTest", comm, [&] {
    return comm->gpu ? comm->gpu->test(request) : comm->daemon->test(request);
  });
}
