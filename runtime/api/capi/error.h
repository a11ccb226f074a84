// Between the runtime's Status and the C interface's results.
#pragma once

#include "runtime/api/capi/handles.h"
#include "runtime/api/occl.h"
#include "runtime/base/status.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace occl::communicator {

/// The result of a call; remembers the text of an error for occlGetLastError() of this thread, as
/// far as there is memory for it. occlInProgress has no text: it is the everyday answer of
/// occlTest.
occlResult_t report(const Status &status) noexcept;

/// "<function>: <text>" as an InvalidArgument.
occlResult_t reportInvalid(const char *function, const char *text) noexcept;

/// For a communicator of the process that this one was forked from.
occlResult_t reportForked(const char *function) noexcept;

/// What no function ought to throw, as an InternalError.
occlResult_t reportException(const std::exception &error) noexcept;

/// As the interface has a collective's deadline; 0 is the communicator's.
std::chrono::milliseconds timeoutOf(uint32_t timeoutMs);

/// Runs call(), which returns a Status, and reports it. No exception passes into C.
template <class Call> occlResult_t guarded(Call call) noexcept {
  try {
    return report(call());
  } catch (const std::bad_alloc &) {
    return report(outOfMemory());
  } catch (const std::exception &error) {
    return reportException(error);
  }
}

/// The same for a function that is given a communicator.
template <class Call>
occlResult_t guarded(const char *function, occlComm_t comm, Call call) noexcept {
  return comm->process.isThisProcess() ? guarded(std::move(call)) : reportForked(function);
}

/// What a caller's extensible struct says, as far as both sides know it: a later or earlier version
/// of it has another size. Nothing if its size is not set.
template <class T> bool copySized(T &to, const T *from) {
  constexpr size_t kMostBytes = 4096;
  if (from->size < sizeof(size_t) || from->size > kMostBytes)
    return false;
  size_t known = from->size < sizeof(T) ? from->size : sizeof(T);
  __builtin_memcpy(&to, from, known);
  to.size = sizeof(T);
  return true;
}

} // namespace occl::communicator
