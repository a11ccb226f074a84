// Errors as values. A Status is success or a text that says where, what and what to do; Expected<T>
// is a T or such a text. No exception leaves plan/.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace occl::support {

class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  static Status error(std::string message) { return Status(std::move(message)); }

  bool isOk() const { return !failure; }
  explicit operator bool() const { return isOk(); }
  /// The text of the error; empty on success.
  const std::string &message() const { return text; }

private:
  explicit Status(std::string message) : failure(true), text(std::move(message)) {}

  bool failure = false;
  std::string text;
};

/// A value, or why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  /// `failure` must be an error.
  Expected(Status failure) : state(std::move(failure)) {}

  bool isOk() const { return content.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status &status() const { return state; }
  const std::string &message() const { return state.message(); }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  std::optional<T> content;
  Status state;
};

} // namespace occl::support
