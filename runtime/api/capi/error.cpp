// Results and error texts of the C interface, whose numbers are those of the runtime; its version.
#include "runtime/api/capi/error.h"

#include "runtime/base/data_type.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/per_thread.h"

namespace occl::communicator {

namespace {

// Codes, types and operations pass between both sides by plain casts.
static_assert(static_cast<int>(StatusCode::Success) == occlSuccess);
static_assert(static_cast<int>(StatusCode::Again) == occlAgain);
static_assert(static_cast<int>(StatusCode::InProgress) == occlInProgress);
static_assert(static_cast<int>(StatusCode::InvalidArgument) == occlInvalidArgument);
static_assert(static_cast<int>(StatusCode::InvalidPlan) == occlInvalidPlan);
static_assert(static_cast<int>(StatusCode::Mismatch) == occlMismatch);
static_assert(static_cast<int>(StatusCode::Timeout) == occlTimeout);
static_assert(static_cast<int>(StatusCode::Aborted) == occlAborted);
static_assert(static_cast<int>(StatusCode::PeerFailed) == occlPeerFailed);
static_assert(static_cast<int>(StatusCode::Deadlock) == occlDeadlock);
static_assert(static_cast<int>(StatusCode::SystemError) == occlSystemError);
static_assert(static_cast<int>(StatusCode::InternalError) == occlInternalError);
static_assert(static_cast<int>(StatusCode::CallbackFailed) == occlCallbackFailed);

#define OCCL_DATA_TYPE(enumerator, ...)                                                            \
  static_assert(static_cast<int>(DataType::enumerator) == occl##enumerator);
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE

#define OCCL_REDUCE_OP(enumerator, ...)                                                            \
  static_assert(static_cast<int>(ReduceOp::enumerator) == occl##enumerator);
#include "runtime/base/reduce_op.def"
#undef OCCL_REDUCE_OP

struct LastError; // of this file alone, so the text is no symbol of the library

std::string &lastError() { return valueOfThisThread<LastError, std::string>(); }

} // namespace

occlResult_t report(const Status &status) noexcept {
  // The answer of a test in vain must not replace the text of an error.
  try {
    if (!status.ok() && status.code() != StatusCode::InProgress)
      lastError() = status.message();
  } catch (const std::bad_alloc &) { // for the text: the code stays
    lastError() = outOfMemory().message();
  }
  return static_cast<occlResult_t>(status.code());
}

occlResult_t reportInvalid(const char *function, const char *text) noexcept {
  return guarded([&]() -> Status {
    return {StatusCode::InvalidArgument, std::string(function) + ": " + text};
  });
}

occlResult_t reportException(const std::exception &error) noexcept {
  return guarded([&]() -> Status { return {StatusCode::InternalError, error.what()}; });
}

occlResult_t reportForked(const char *function) noexcept {
  return reportInvalid(function, "this communicator belongs to the process that forked this one; a "
                                 "forked child has no part in it and makes its own");
}

std::chrono::milliseconds timeoutOf(uint32_t timeoutMs) {
  return timeoutMs == OCCL_NO_TIMEOUT ? kNoDeadline : std::chrono::milliseconds(timeoutMs);
}

} // namespace occl::communicator

occlResult_t occlGetVersion(uint32_t *major, uint32_t *minor) {
  if (!major || !minor)
    return occl::communicator::reportInvalid("occlGetVersion", "major and minor must not be NULL");
  *major = OCCL_VERSION_MAJOR;
  *minor = OCCL_VERSION_MINOR;
  return occlSuccess;
}

const char *occlGetLastError(void) { return occl::communicator::lastError().c_str(); }

const char *occlGetErrorString(occlResult_t result) {
  // Without a default case the compiler names a result that has no text.
  switch (result) {
  case occlSuccess:
    return "success";
  case occlAgain:
    return "no resource is free now";
  case occlInProgress:
    return "in progress";
  case occlInvalidArgument:
    return "invalid argument";
  case occlInvalidPlan:
    return "invalid plan";
  case occlMismatch:
    return "ranks disagree about a collective";
  case occlTimeout:
    return "a deadline passed";
  case occlAborted:
    return "aborted";
  case occlPeerFailed:
    return "a rank is gone";
  case occlDeadlock:
    return "the ranks wait for each other";
  case occlSystemError:
    return "the operating system refused";
  case occlInternalError:
    return "internal error";
  case occlCallbackFailed:
    return "a callback threw an exception";
  }
  // C allows for numbers that are none of the enumeration.
  return "unknown result";
}
