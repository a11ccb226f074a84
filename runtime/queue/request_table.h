// Requests: what a submission returns, and who is told when it ends.
#pragma once

#include "runtime/base/status.h"
#include "runtime/queue/bounded_ring.h"

#include "runtime/sync/atomic.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace occl::daemon {

/// Never 0.
using RequestId = uint64_t;

/// The user's function, of a type that only `invoke` knows.
struct Callback {
  /// Calls it; an error says what it threw.
  Status (*invoke)(void (*function)(), RequestId request, StatusCode result, void *user) = nullptr;
  void (*function)() = nullptr;
  void *user = nullptr;

  explicit operator bool() const { return invoke != nullptr; }
};

/// Whose request it is, for messages.
struct RequestOrigin {
  uint64_t collective = 0;
  uint64_t ordinal = 0;
};

/// How an invocation ended that a thread runs by itself, without a request: in the invocation,
/// which is not used again before that thread has taken it. Thread safety: one sets, one takes.
class OwnResult {
public:
  /// Somebody is going to take it.
  void expect() { word.store(kExpected, std::memory_order_relaxed); }
  void set(StatusCode result) {
    word.store(kThere + static_cast<uint32_t>(result), std::memory_order_release);
  }
  bool isThere() const { return word.load(std::memory_order_acquire) >= kThere; }
  /// Once it is there.
  StatusCode take() {
    auto result = static_cast<StatusCode>(word.load(std::memory_order_relaxed) - kThere);
    word.store(kNobodys, std::memory_order_release);
    return result;
  }
  bool isNobodys() const { return word.load(std::memory_order_acquire) == kNobodys; }

private:
  static constexpr uint32_t kNobodys = 0, kExpected = 1, kThere = 2;
  Atomic<uint32_t> word{kNobodys};
};

/// A fixed number of slots. A request without callback keeps its slot until someone has taken its
/// result. Thread safety: any.
class RequestTable {
public:
  static constexpr uint32_t kMaxCapacity = 1u << 20;

  explicit RequestTable(uint32_t capacity);

  /// Nothing if all slots are taken.
  std::optional<RequestId> open(const Callback &callback, const RequestOrigin &origin = {});
  /// Gives back a request that was never started.
  void cancel(RequestId request);
  /// Publishes the result, once for each request. One with a callback then needs callBack().
  void complete(RequestId request, StatusCode result);
  /// The slot of a request, as callBack() takes it: less than 2^20.
  static uint32_t slotOf(RequestId request) { return indexOf(request); }
  /// Runs the callback of the complete request in this slot, on this thread, and forgets the
  /// request. What the callback threw, and whose it was.
  struct CallbackEnd {
    Status status;
    RequestOrigin origin;
  };
  CallbackEnd callBack(uint32_t slot);

  enum class Phase {
    Never,    // no such request was ever opened
    InFlight, // not complete
    Complete, // complete and not yet taken
    Forgotten // complete and taken, or its callback has run
  };
  Phase phase(RequestId request) const;
  /// The result of a request that is complete; forgets it if it has no callback. Nothing if it is
  /// forgotten already.
  std::optional<StatusCode> take(RequestId request);

  /// "a request: all 4 of config->maxInFlight are taken, 3 by what is complete and was not waited
  /// for". Other threads go on meanwhile.
  std::string describeFull() const;

private:
  static constexpr uint32_t kIndexBits = 20;
  /// CallingBack is Done, but nobody's to take.
  enum State : uint64_t { Free, Open, Done, CallingBack };

  /// All that others than its owner read is in one word, so that a late reader of a slot that has
  /// been recycled reads nothing half.
  struct alignas(64) Slot {
    Atomic<uint64_t> word{pack(1, Free)};
    Callback callback;
    RequestOrigin origin;
  };

  static constexpr uint64_t pack(uint64_t generation, State state,
                                 StatusCode result = StatusCode::Success) {
    return generation << 8 | static_cast<uint64_t>(result) << 2 | state;
  }
  static uint64_t generationIn(uint64_t word) { return word >> 8; }
  static StatusCode resultIn(uint64_t word) { return static_cast<StatusCode>(word >> 2 & 63); }
  static State stateIn(uint64_t word) { return static_cast<State>(word & 3); }

  static uint64_t generationOf(RequestId request) { return request >> kIndexBits; }
  static uint32_t indexOf(RequestId request) { return request & ((1u << kIndexBits) - 1); }
  void recycle(RequestId request);

  uint32_t capacity;
  std::unique_ptr<Slot[]> slots;
  queue::BoundedRing<uint32_t> freeSlots; // a ring, so that a slot rests before it is used again
};

} // namespace occl::daemon
