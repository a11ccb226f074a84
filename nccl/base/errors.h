// Results and their texts.
#pragma once

#include "nccl/nccl_abi.h"
#include "runtime/api/occl.h"

#include <exception>
#include <new>
#include <string>

namespace occl::nccl {

/// A result with the text that belongs to it: "" for ncclSuccess.
struct Outcome {
  ncclResult_t result = ncclSuccess;
  std::string text;

  bool ok() const { return result == ncclSuccess; }
};

inline Outcome invalidArgument(std::string text) { return {ncclInvalidArgument, std::move(text)}; }
inline Outcome invalidUsage(std::string text) { return {ncclInvalidUsage, std::move(text)}; }

/// What NCCL calls it.
ncclResult_t resultOf(occlResult_t result);
/// Of a call of OCCL by this thread, just returned; with its text.
Outcome outcomeOf(occlResult_t result);

/// Remembers the text for ncclGetLastError of the process, and writes it where NCCL_DEBUG says, if
/// it is an error. Any thread.
ncclResult_t report(const char *function, const Outcome &outcome);

/// Runs body(), which returns an Outcome, and reports it. No exception passes into C.
template <class Body> ncclResult_t guarded(const char *function, Body body) {
  try {
    return report(function, body());
  } catch (const std::bad_alloc &) {
    return report(function, {ncclSystemError, "out of memory"});
  } catch (const std::exception &error) {
    return report(function, {ncclInternalError, error.what()});
  }
}

} // namespace occl::nccl
