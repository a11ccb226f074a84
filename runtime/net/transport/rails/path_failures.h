// Between which addresses nothing came through lately: what one communicator has waited for in vain
// the next one of the same process does not wait for again. docs/decisions/hosts/rails.md.
#pragma once

#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/clock.h"

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>

namespace occl::net {

/// From an address of this machine to one of another, which is known by that at which it was met:
/// private addresses are those of several machines.
struct Path {
  std::array<uint8_t, 16> own{}, there{}, met{}; // hosts, as of Address

  auto operator<=>(const Path &) const = default;
};

/// Any thread, also of a child that fork() makes: it knows what its parent knew. Nothing waits.
class PathFailures {
public:
  using Clock = SteadyClock;

  /// So long a failure counts: a link that has come up is used by communicators made after that.
  static constexpr std::chrono::seconds kLifetime{60};
  /// Of more nothing is remembered.
  static constexpr size_t kMost = 4096;

  void addFailure(const Path &path, Clock::time_point now = Clock::now());
  /// It works.
  void remove(const Path &path);
  bool hasFailed(const Path &path, Clock::time_point now = Clock::now()) const;

  /// Those of this process.
  static PathFailures &ofProcess();

private:
  std::map<Path, Clock::time_point> until;
};

} // namespace occl::net
