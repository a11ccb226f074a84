// Transfers between two ranks (transfer/transfer.h) on the task board. They need nothing that
// admission gives: docs/decisions/hosts/transfers.md.
#pragma once

#include "runtime/invocation/collective.h"
#include "runtime/invocation/exchange.h"
#include "runtime/sched/core.h"
#include "runtime/sync/light_mutex.h"
#include "runtime/transfer/transfer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace occl::daemon {

/// A send to, or a receive from, rank `peer`.
struct Transfer {
  bool isSend = false;
  uint32_t peer = 0;
  transfer::Part part;
};

/// Of a communicator's rank. Thread safety: any.
class Transfers {
public:
  explicit Transfers(Core &core);
  ~Transfers();

  /// InvalidArgument: no such rank, or too many elements, or a device without preemption.
  Status check(const Transfer &transfer) const;
  /// Divides them into directions, in `exchange`, which is new. They have been checked. If it
  /// throws there is no memory, and nothing has changed.
  void prepare(Exchange &exchange, std::span<const Transfer> transfers);
  /// Puts what is prepared on the task board, that of a direction behind what was there before.
  /// Ends with a sequentially consistent fence.
  void begin(Exchange &exchange) noexcept;
  /// Both. If `visit` is given, and there is just one direction and nothing else on the board, its
  /// task is the caller's to begin with; else nullptr.
  BlockTask *begin(Exchange &exchange, std::span<const Transfer> transfers,
                   scheduler::Visit *visit = nullptr);
  /// The same with a request, which is complete when all of them have ended; there may be none.
  /// Again: all requests are taken.
  StatusOr<RequestId> start(std::span<const Transfer> transfers, const Callback &callback,
                            bool callbackNeverBlocks);

private:
  /// A direction of a pair, from its first transfer on.
  struct Known {
    Known(const Fabric &fabric, bool isSend, uint32_t peer, Doorbell &selfBell);

    const std::unique_ptr<transfer::End> end;
    IdState sequence; // its nextOrdinal is the next transfer's number
    Collective shape;
  };

  Known &know(bool isSend, uint32_t peer);
  void divide(Exchange &exchange, std::span<const Transfer> transfers);
  BlockTask *submit(Exchange &exchange, scheduler::Visit *visit) noexcept;

  Core &core;
  LightMutex mutex;                                    // guards all below
  std::vector<std::unique_ptr<Known>> sends, receives; // by peer
};

} // namespace occl::daemon
