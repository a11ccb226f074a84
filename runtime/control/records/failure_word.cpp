// The cause of a failure in the segment of the rank that has seen it.
#include "runtime/control/records/failure_word.h"

#include "runtime/sync/read_once.h"

#include <algorithm>
#include <cstring>

namespace occl::transport {

void FailureCause::writeCause(const Status &cause) {
  // The first caller writes the text, so that no reader sees two texts mixed.
  uint32_t none = 0;
  if (!causeState.compare_exchange_strong(none, 1, std::memory_order_acq_rel))
    return;
  code = static_cast<uint32_t>(cause.code());
  size_t length = std::min(cause.message().size(), kTextBytes - 1);
  std::memcpy(text, cause.message().data(), length);
  text[length] = '\0';
  causeState.store(2, std::memory_order_release);
}

Status FailureCause::readCause() const {
  if (causeState.load(std::memory_order_acquire) != 2)
    return {};
  // Another process wrote this: it may be damaged. Nobody calls again because of a failure.
  constexpr auto kFirst = static_cast<uint32_t>(StatusCode::InvalidArgument),
                 kLast = static_cast<uint32_t>(StatusCode::CallbackFailed);
  const uint32_t said = readOnce(code);
  StatusCode known =
      said < kFirst || said > kLast ? StatusCode::InternalError : static_cast<StatusCode>(said);
  return {known, std::string(text, strnlen(text, kTextBytes))};
}

} // namespace occl::transport
