// Makes a smaller communicator of the ranks that are left of another, which may have failed.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/control/membership/agreement.h"
#include "runtime/sync/mutex.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace occl::daemon {

struct ShrinkRequest {
  std::vector<bool> excluded; // by rank; empty: nobody
  uint64_t segmentBytes = 0;  // the same on all ranks
  uint64_t heapBytes = 0;     // of these, the user's shared heap
  /// Of each step: for all to come, and to form the group.
  std::chrono::milliseconds timeout{0};
};

/// One rank's part. Thread safety: any; one thread after another.
class Shrinker {
public:
  explicit Shrinker(Fabric &fabric);
  ~Shrinker();
  Shrinker(const Shrinker &) = delete;
  Shrinker &operator=(const Shrinker &) = delete;

  /// The smaller communicator's fabric, connected: of all ranks that take part in time and are
  /// excluded by none of them, in the same order. Takes two timeouts at most, and two more for
  /// every rank that is lost meanwhile; on several machines ten in all, where Timeout says that no
  /// majority has confirmed it: the next call goes on there. PeerFailed if this rank is not among
  /// them; Mismatch where segmentBytes differ; SystemError.
  StatusOr<std::unique_ptr<Fabric>> shrink(ShrinkRequest request);

private:
  std::optional<StatusOr<std::unique_ptr<Fabric>>> attempt(const ShrinkRequest &request,
                                                           Status &whyRefused);
  StatusOr<std::unique_ptr<Fabric>> take(uint64_t attempt);

  Fabric &fabric;
  Mutex mutex; // guards what follows
  std::unique_ptr<Agreement> agreement;
  /// Of attempts of this call: groups that this rank has formed and that may still be confirmed.
  std::map<uint64_t, std::unique_ptr<Fabric>> formed;
};

} // namespace occl::daemon
