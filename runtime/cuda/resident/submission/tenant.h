// Whose collectives a resident daemon executes: a communicator's rank. A daemon has any number of
// tenants; what fails one of them leaves the others alone.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/resident/submission/submission_side.h"

#include <chrono>
#include <cstdint>
#include <span>

namespace occl::cuda::resident {

/// Which invocation it is, in the tenant's words.
struct InvocationName {
  uint64_t collective = 0; // as the tenant calls it
  uint64_t ordinal = 0;
};

/// A thread block of a tenant that was waiting when executors last left.
struct TenantWait {
  InvocationName invocation;
  OpenTask task;
  uint64_t missing = 0; // ranks that had not announced the invocation, as bits
};

/// Called by the daemon's thread and by those that wait. All but comeBy(), fail(), endLate(),
/// reportLate() and look() are called with the daemon's lock: they must not call the daemon, nor
/// wait for who does.
class Tenant {
public:
  virtual ~Tenant() = default;

  virtual bool hasFailed() const = 0;
  /// Whether comeBy() has something to do, so that it is called often. Cheap.
  virtual bool hasWork() const { return false; }
  /// By the daemon's thread, each time around. What it returns is called afterwards, when the
  /// tenant may be detached already.
  virtual std::function<void()> comeBy() { return {}; }
  /// Once it has failed: why.
  virtual Status failure() const = 0;
  /// It fails, unless it has already.
  virtual void fail(const Status &cause) = 0;
  /// The invocation is not complete at its deadline: makes the tenant fail.
  virtual void endLate(const InvocationName &invocation, std::span<const TenantWait> waits) = 0;
  /// The invocation has been in flight for long (longWait()), and goes on: says so to whoever reads
  /// the process's messages.
  virtual void reportLate(const InvocationName &invocation) = 0;

  /// Somebody wants to know what it waits for: look() is the answer.
  virtual bool isAsked() const = 0;
  /// What it waits for now; nothing of it is being executed. It may find a reason to fail.
  virtual void look(std::span<const TenantWait> waits) = 0;

  /// An invocation has ended so, so long after it was submitted.
  virtual void ended(const InvocationName &invocation, const Status &outcome,
                     std::chrono::nanoseconds after) = 0;
};

} // namespace occl::cuda::resident
