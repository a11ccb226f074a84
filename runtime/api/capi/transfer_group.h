// The calls of a thread's group until it ends.
#pragma once

#include "runtime/api/capi/handles.h"
#include "runtime/base/process_identity.h"
#include "runtime/base/status.h"

#include <span>
#include <utility>
#include <vector>

namespace occl::communicator {

class TransferGroup {
public:
  /// Of the calling thread; null outside of groups. What a forked child has of its parent is none.
  static TransferGroup *current();
  static void enter();
  /// Leaves the innermost. Of the outermost: its end, see occlGroupEnd.
  static Status leave();
  /// Leaves the outermost, see occlGroupEndAsync.
  static StatusOr<daemon::RequestId> leaveAsync(occlComm &comm, const daemon::Callback &callback,
                                                bool callbackNeverBlocks);

  /// While it lives the thread is outside of groups, for a callback that may be called inside of
  /// one.
  class Outside {
  public:
    Outside();
    /// If it has not been asked, what is left open is given up.
    ~Outside();
    Outside(const Outside &) = delete;
    Outside &operator=(const Outside &) = delete;
    /// Whether a group was begun since and has not been ended; it is given up.
    bool hasLeftOne();

  private:
    TransferGroup *const before;
  };

  /// The stream counts on devices.
  void add(occlComm &comm, std::span<const daemon::Transfer> transfers, void *stream);
  /// A call was refused: so is the group, with the first one's error.
  void refuse(StatusCode code, const char *why) noexcept;

private:
  Status run();
  StatusOr<daemon::RequestId> start(occlComm &comm, const daemon::Callback &callback,
                                    bool callbackNeverBlocks);
  Status check() const;
  uint64_t bytes() const;

  const ProcessMark process;
  uint32_t depth = 0;
  Status refused;
  /// By communicator, in the order of its first call.
  struct Member {
    occlComm *comm = nullptr;
    std::vector<daemon::Transfer> transfers;
    std::vector<void *> streams; // each once
  };
  std::vector<Member> members;
};

} // namespace occl::communicator
