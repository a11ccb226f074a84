// What the parts of a communicator's rank share: its admission, its watchdog, and the executors of
// its device.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/invocation/exchange.h"
#include "runtime/observe/counters/stats.h"
#include "runtime/observe/trace/trace.h"
#include "runtime/queue/completion_queue.h"
#include "runtime/queue/request_table.h"
#include "runtime/sched/device.h"
#include "runtime/sched/options.h"
#include "runtime/sched/room_waits.h"
#include "runtime/sched/task_board.h"
#include "runtime/sync/atomic.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {

struct Core {
  Core(std::shared_ptr<Device> device, std::unique_ptr<Fabric> joined, const Options &options);

  const Options options;
  const std::shared_ptr<Device> device;
  const std::unique_ptr<Fabric> fabric;
  Stats stats;
  insight::Trace trace;
  /// What it has on the device's task board.
  BoardPlace place;
  RequestTable requests;
  RoomWaits roomWaits;
  const std::unique_ptr<queue::CompletionQueue> completions; // of those with a callback
  /// Invocations that are complete, with their callbacks returned.
  Atomic<uint64_t> ended{0};
  /// Invocations of transfers and callbacks of their groups, which are not among those.
  Atomic<uint64_t> openTransfers{0};

  /// Whether something is in flight that this thread knows of. What has ended is read first: whose
  /// end starts another one is then seen, or that one is.
  bool hasOpen() const {
    const uint64_t over = ended.load(std::memory_order_acquire);
    return openTransfers.load(std::memory_order_acquire) != 0 ||
           stats.submitted.load(std::memory_order_relaxed) > over;
  }
  /// An invocation has been admitted, with a request or as its caller's own. Its number on the
  /// device. Under the admission's lock.
  uint32_t countOpen(bool hasCallback, bool isOwn);
  /// Makes an invocation of one task, which executes `operation` instead of a plan, ready for the
  /// board, and counts it as open, so that a drain waits for it. Its collective, id and ordinal are
  /// set. Its result is that of the exchange, which has been told how many parts it has.
  void open(OpenInvocation &invocation, BlockTask &task, transfer::Operation &operation,
            Exchange &exchange);
  /// After an invocation of it has been announced: wakes the ranks that may wait for that. Ends
  /// with what was announced and what is read from now on in order.
  void ringReaders(const Collective &collective) const;
  /// After it has been announced, before it can be complete: whether no neighbour that it is
  /// compared with has something else in mind. Else the communicator has failed, and with it the
  /// invocation, though it may need nothing of that neighbour.
  bool compare(const OpenInvocation &invocation) const;
  /// Completes an invocation that no executor of this rank refers to any more: its result becomes
  /// visible and its callback is queued, to be run by runCallbacks(). Without callback this may be
  /// the end of the communicator: the core is not to be accessed any more unless it is pinned.
  void finish(OpenInvocation &invocation, StatusCode result);
  /// A part of the exchange has ended that holds one of openTransfers. The last one completes its
  /// request, if it has one; then as finish().
  void endPart(Exchange &exchange, StatusCode result);
  /// Sees to it that queued callbacks are run: those that never block on this thread, unless
  /// another is at it, the others by the device's threads. Nothing is claimed or locked. The place
  /// is pinned.
  void runCallbacks();
  /// Whether this thread is inside a callback of this communicator's rank.
  bool isCallingBack() const;
  /// From now on rank r may be in the middle of an access to this rank's buffers when it fails, and
  /// is then waited for.
  void awaitAfterFailure(uint32_t r) { awaited[r].store(1, std::memory_order_relaxed); }
  /// After a failure: ends everything that is open as soon as no task is claimed and no other rank
  /// accesses its buffers. Until then its tasks stay on the board, and whoever looks at one calls
  /// this again. Any thread that keeps the core from being detached, any number of times.
  void settleFailure();

  /// "'name' (id 7)".
  std::function<std::string(uint64_t collective)> nameOf;

private:
  bool areBuffersAccessed();
  void queueCallback(RequestId request, bool neverBlocks);
  void callBack(queue::CompletionEntry entry);
  static void callBackOnThread(void *core, queue::CompletionEntry entry);

  std::vector<Atomic<uint32_t>> awaited; // by rank
  Atomic<bool> areBuffersFree{false};    // after a failure
  /// 0 while nobody runs callbacks; else how often that was asked for since.
  Atomic<uint32_t> callbackTurns{0};
};

} // namespace occl::daemon
