// The calls of a thread's group until it ends.
#pragma once

#include "runtime/base/status.h"
#include "runtime/communicator/handles.h"

#include <span>
#include <utility>
#include <vector>

namespace occl::communicator {

class TransferGroup {
public:
  /// Of the calling thread; null outside of groups.
  static TransferGroup *current();
  static void enter();
  /// Leaves the innermost. Of the outermost: its end, see occlGroupEnd.
  static Status leave();

  void add(occlComm &comm, std::span<const daemon::Transfer> transfers);
  /// A call was refused: so is the group.
  void refuse(const Status &why);

private:
  Status run();

  uint32_t depth = 0;
  Status refused;
  /// By communicator, in the order of its first call.
  std::vector<std::pair<occlComm *, std::vector<daemon::Transfer>>> members;
};

} // namespace occl::communicator
