// A thread inside a wait takes the place of a worker, and hands its work over when it leaves.
#include "runtime/sched/inside_wait.h"

#include "runtime/sched/device.h"
#include "runtime/sync/atomic.h"

namespace occl::daemon {

InsideWait::InsideWait(Device &device) : device(device) {
  device.helpers.fetch_add(1, std::memory_order_seq_cst);
}

InsideWait::~InsideWait() {
  device.helpers.fetch_sub(1, std::memory_order_seq_cst);
  // Who submits looks for helpers after a fence.
  fenceAfterUpdate();
  if (!device.submissions.areOpen())
    return;
  // Executors that sleep may be able to go on with what this one has moved.
  device.handOver();
  if (device.helpers.load(std::memory_order_relaxed) != 0)
    return;
  // Whatever else is open is the workers' now.
  if (device.openWithCallback.load(std::memory_order_relaxed) != 0)
    device.workBell.ringAll();
  else
    device.workBell.ring();
}

} // namespace occl::daemon
