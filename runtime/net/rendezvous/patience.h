// How long somebody is waited for while ranks meet: until a deadline, or until it is known that he
// does not come.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace occl::net {

/// One thread's.
class Patience {
public:
  /// Why who is waited for does not come any more; Success: he may.
  using WhyGone = std::function<Status()>;

  Patience(const Deadline &deadline, WhyGone whyGone = {})
      : deadline(deadline), whyGone(std::move(whyGone)) {}

  bool passed() const { return deadline.passed(); }
  Deadline::Clock::duration remaining() const { return deadline.remaining(); }
  const Deadline &end() const { return deadline; }
  /// Asks now and then. Once somebody is gone that stays so.
  const Status &look() const {
    if (whyGone && gone.ok() && SteadyClock::now() >= nextLook) {
      gone = whyGone();
      nextLook = SteadyClock::now() + kBetweenLooks;
    }
    return gone;
  }
  /// For poll(): not beyond `end`, and no longer than until the next look.
  int milliseconds(const Deadline &end) const {
    // Deadlines may be later than poll() can count.
    constexpr std::chrono::milliseconds kMost = std::chrono::minutes(1);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end.remaining());
    return static_cast<int>(std::min(left, whyGone ? kBetweenLooks : kMost).count());
  }

  static constexpr std::chrono::milliseconds kBetweenLooks{100};

private:
  const Deadline deadline;
  const WhyGone whyGone;
  mutable Status gone;
  mutable SteadyClock::time_point nextLook{};
};

} // namespace occl::net
