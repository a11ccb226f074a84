// Errors as values in the runtime: a Status says that something worked, or why not. Thread safety:
// as std::string.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace occl {

/// The values are those of occlResult_t (the communicator asserts it).
enum class StatusCode : uint8_t {
  Success = 0,
  Again = 1,
  InProgress = 2,
  InvalidArgument = 3,
  InvalidPlan = 4,
  Mismatch = 5,
  Timeout = 6,
  Aborted = 7,
  PeerFailed = 8,
  Deadlock = 9,
  SystemError = 10,
  InternalError = 11,
  CallbackFailed = 12,
};

/// Success, or a code with a message that says where, what, and what to do.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : failure(std::move(message)), kind(code) {}

  bool ok() const { return kind == StatusCode::Success; }
  StatusCode code() const { return kind; }
  const std::string &message() const { return failure; }

private:
  std::string failure;
  StatusCode kind = StatusCode::Success;
};

/// Needs no memory itself: a text as short as this has none.
inline Status outOfMemory() { return {StatusCode::SystemError, "out of memory"}; }

/// A SystemError "<what>: <text of errno>".
Status systemError(std::string what, int error);

/// A T, or the Status that says why there is none.
template <class T> class [[nodiscard]] StatusOr {
public:
  StatusOr(T value) : held(std::move(value)) {}
  StatusOr(Status status) : failure(std::move(status)) { assert(!failure.ok()); }

  bool ok() const { return held.has_value(); }
  /// Success if there is a value.
  const Status &status() const { return failure; }
  /// Only if ok().
  T &operator*() { return *held; }
  const T &operator*() const { return *held; }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

private:
  std::optional<T> held;
  Status failure;
};

/// Takes what there is; Success then.
template <class T> Status take(T &to, StatusOr<T> from) {
  if (from.ok())
    to = std::move(*from);
  return from.status();
}

} // namespace occl
