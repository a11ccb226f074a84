// What the C interface's handles point to.
#pragma once

#include "plan/model/plan.h"
#include "runtime/api/capi/watching.h"
#include "runtime/api/occl_partitioned.h"
#include "runtime/base/process_identity.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/partitioned/requests.h"
#include "runtime/plan_library/plan_library.h"
#include "runtime/rank/daemon.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct occlPlan {
  std::shared_ptr<const occl::plan::Plan> plan;
  uint64_t hash = 0;
};

/// Of a send or receive, on a host or on a device, or of a collective; the request is the
/// communicator's.
struct occlPart {
  occlComm *comm = nullptr;
  occl::partitioned::Request *request = nullptr;
  occl::cuda::DevicePart *onDevice = nullptr;
  occl::daemon::PartitionedCollective *collective = nullptr;
  // Of a collective, and of a send.
  uint64_t rounds = 0, messages = 0;
};

struct occlComm {
  /// OCCL_TRACE is for the communicators that come first: in those made of them other ranks have
  /// the same numbers.
  /// onDevice: of a communicator on devices, else null.
  occlComm(std::unique_ptr<occl::daemon::Daemon> started, bool isFirst,
           std::unique_ptr<occl::cuda::DeviceRank> onDevice = nullptr);
  /// Nothing is in flight.
  ~occlComm() { watching.end(); }

  bool isBusy() { return daemon->isBusy() || (gpu && gpu->isBusy()); }
  std::string report() { return gpu ? gpu->report() : daemon->insight().report(); }
  /// "'grad3' (id 3)".
  std::string nameOf(uint64_t id) { return gpu ? gpu->nameOf(id) : daemon->lookUp(id).name; }
  /// Of sequences; ascending.
  std::vector<uint64_t> sequences() { return gpu ? gpu->ids() : daemon->sequences(); }

  /// As daemon::RankInsight, with what devices do.
  occl::Status startTrace(const std::string &pattern);
  occl::Status stopTrace();

  /// In a process that was forked from this one the communicator must not be touched: its threads
  /// are not there, and its memory is that of a rank which goes on.
  const occl::ProcessMark process;
  /// Of the ranges of its calls (support/nvtx).
  const uint32_t category;
  std::unique_ptr<occl::daemon::Daemon> daemon;
  const std::unique_ptr<occl::cuda::DeviceRank> gpu;
  occl::communicator::Watching watching;
  occl::Mutex partsMutex;
  std::unordered_map<occlPart *, std::unique_ptr<occlPart>> parts; // those that are not freed
  occl::Mutex failureMutex;
  std::string failureText; // once it has failed; for occlCommGetLastError
};

namespace occl::communicator {

/// A handle of a request of `comm`, which has none yet; and its end. The communicator owns its
/// handles, so those that are not freed go with it.
occlPart_t addPart(occlComm &comm);
void removePart(occlPart_t part);

/// The handle of a request that make(handle), which returns a Status, sets in it. The handle is
/// there first: a request that other ranks have heard of has one.
template <class Make> Status makePart(occlComm &comm, occlPart_t *part, Make make) {
  std::unique_ptr<occlPart, decltype(&removePart)> made(addPart(comm), removePart);
  if (Status status = make(*made); !status.ok())
    return status;
  *part = made.release();
  return {};
}

/// A handle to a plan that verifyPlan has accepted; the caller destroys it.
occlPlan_t adoptPlan(plan::Plan verified);

/// By occlCall, or by occlStart: on devices other kernels execute the one than the other. Or as a
/// partitioned collective, whose ranks access their own buffers alone.
enum class Way { Called, Started, Partitioned };
/// The plan of a call of this kind, other than occlKindPlan: the same on all ranks that say the
/// same. `bytes`: of one part.
StatusOr<plan_library::ChosenPlan> choosePlan(const occlComm &comm, occlKind_t kind, uint64_t bytes,
                                              uint32_t root, Way way);

} // namespace occl::communicator
