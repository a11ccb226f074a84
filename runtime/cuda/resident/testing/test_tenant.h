// A tenant of a resident daemon, for tests.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/resident/submission/tenant.h"

#include <chrono>
#include <mutex>
#include <span>
#include <string>

namespace occl::cuda::resident {

/// A rank that fails when it is told to, or at a deadline.
class TestTenant : public Tenant {
public:
  bool hasFailed() const override { return !failure().ok(); }
  Status failure() const override {
    std::lock_guard lock(mutex);
    return failed;
  }
  void fail(const Status &cause) override {
    std::lock_guard lock(mutex);
    if (failed.ok())
      failed = cause;
  }
  void endLate(const InvocationName &invocation, std::span<const TenantWait> waits) override {
    std::string text = "collective " + std::to_string(invocation.collective) + " is late";
    for (const TenantWait &wait : waits)
      text += "; instruction " + std::to_string(wait.task.instruction) + " waits for rank " +
              std::to_string(wait.task.peer);
    fail({StatusCode::Timeout, text});
  }
  void reportLate(const InvocationName &) override {}
  bool isAsked() const override { return false; }
  void look(std::span<const TenantWait>) override {}
  void ended(const InvocationName &, const Status &, std::chrono::nanoseconds) override {}

private:
  mutable std::mutex mutex;
  Status failed;
};

} // namespace occl::cuda::resident
