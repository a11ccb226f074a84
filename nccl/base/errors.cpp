#include "nccl/base/errors.h"

#include "nccl/abi/exports.h"
#include "nccl/base/environment.h"
#include "nccl/base/per_process.h"

#include <mutex>

namespace occl::nccl {

namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};

constinit PerProcess<LastError> lastError;

} // namespace

ncclResult_t resultOf(occlResult_t result) {
  switch (result) {
  case occlSuccess:
    return ncclSuccess;
  case occlInProgress:
    return ncclInProgress;
  case occlInvalidArgument:
    return ncclInvalidArgument;
  case occlMismatch: // the ranks' calls do not belong together
    return ncclInvalidUsage;
  case occlTimeout:
  case occlAborted: // by another rank: after this one's abort nobody asks
  case occlPeerFailed:
    return ncclRemoteError;
  case occlAgain:
  case occlSystemError:
    return ncclSystemError;
  case occlInvalidPlan:
  case occlDeadlock:
  case occlInternalError:
  case occlCallbackFailed:
    break;
  }
  return ncclInternalError;
}

Outcome outcomeOf(occlResult_t result) {
  return {resultOf(result), result == occlSuccess ? "" : occlGetLastError()};
}

ncclResult_t report(const char *function, const Outcome &outcome) {
  // What is in progress is no failure, and NCCL's programs poll it often.
  if (outcome.ok() || outcome.result == ncclInProgress)
    return outcome.result;
  std::string text = std::string(function) + ": " + outcome.text;
  log(LogLevel::Warn, text);
  LastError &last = lastError.get();
  std::lock_guard lock(last.mutex);
  // One text for the process, as NCCL has it: ncclGetLastError takes a communicator, but programs
  // pass any.
  last.text = std::move(text);
  return outcome.result;
}

} // namespace occl::nccl

const char *ncclGetErrorString(ncclResult_t result) {
  // What the code means here; the text of ncclGetLastError has the numbers and names of the call.
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "CUDA call failed; ncclGetLastError() says which";
  case ncclSystemError:
    return "the operating system refused something; ncclGetLastError() says what";
  case ncclInternalError:
    return "internal error of OCCL; ncclGetLastError() says more";
  case ncclInvalidArgument:
    return "invalid argument; ncclGetLastError() says which";
  case ncclInvalidUsage:
    return "invalid usage; ncclGetLastError() says what";
  case ncclRemoteError:
    return "another rank has failed, aborted or left; ncclGetLastError() says which";
  case ncclInProgress:
    return "in progress";
  case ncclNumResults:
    break;
  }
  return "unknown result code";
}
OCCL_NCCL_SECOND_NAME(ncclGetErrorString);

const char *ncclGetLastError(ncclComm_t) {
  // The text stays this thread's until it asks again.
  thread_local std::string copy;
  occl::nccl::LastError &last = occl::nccl::lastError.get();
  std::lock_guard lock(last.mutex);
  copy = last.text;
  return copy.c_str();
}
OCCL_NCCL_SECOND_NAME(ncclGetLastError);
