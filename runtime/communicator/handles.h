// What the C interface's handles point to.
#pragma once

#include "plan/plan.h"
#include "runtime/communicator/occl.h"
#include "runtime/daemon/daemon.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

struct occlPlan {
  std::shared_ptr<const occl::plan::Plan> plan;
  uint64_t hash = 0;
};

struct occlComm {
  explicit occlComm(std::unique_ptr<occl::daemon::Daemon> daemon);

  std::unique_ptr<occl::daemon::Daemon> daemon;
  std::once_flag failureFlag;
  std::string failureText; // once it has failed; for occlCommGetLastError
};

namespace occl::communicator {

/// A handle to a plan that verifyPlan has accepted; the caller destroys it.
occlPlan_t adoptPlan(plan::Plan verified);

} // namespace occl::communicator
