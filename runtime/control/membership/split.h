// Divides a communicator into smaller ones. All its ranks take part; they tell each other what each
// wants through their segments.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/fabric.h"
#include "runtime/control/membership/group_offer.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::daemon {

struct SplitRequest {
  /// Ranks of one colour come together; with a negative one, this rank is in none.
  int32_t colour = 0;
  /// Orders the ranks of the new communicator; equal ones as in the old.
  int32_t key = 0;
  uint64_t segmentBytes = 0; // the same on all ranks of a colour
  uint64_t heapBytes = 0;    // of these, the user's shared heap
};

/// One rank's view of the divisions of its communicator, which are numbered alike on all ranks.
class Splitter {
public:
  explicit Splitter(Fabric &fabric) : fabric(fabric) {}

  /// The new communicator's fabric, connected, or null without a colour. Returns when all ranks
  /// have called it. Timeout names those that have not; PeerFailed one that is gone or gave up;
  /// Mismatch; SystemError; InvalidArgument while another thread is inside; or why the communicator
  /// has failed. After an error on any rank all may try again: they still count alike.
  StatusOr<std::unique_ptr<Fabric>> split(const SplitRequest &request, const Deadline &deadline);

private:
  StatusOr<std::unique_ptr<bootstrap::Group>>
  form(const std::vector<uint32_t> &ranks, GroupOffer offer, const Deadline &deadline) const;
  void publish(const SplitRequest &request, const bootstrap::OfferHandle &handle);
  void tellOtherMachines() const;
  StatusOr<std::unique_ptr<Fabric>> run(const SplitRequest &request, const Deadline &deadline);
  Status awaitAll(const Atomic<uint64_t> transport::SplitRecord::*counter, uint64_t atLeast,
                  const Deadline &deadline) const;
  Status checkAlive(uint32_t rank) const;
  StatusOr<std::vector<uint32_t>> membersOf(const SplitRequest &request) const;
  transport::SplitRecord &recordOf(uint32_t rank) const { return fabric.of(rank).header().split; }

  Fabric &fabric;
  Mutex mutex;              // held by the thread that is inside
  uint64_t number = 0;      // of the next division
  bool allHaveCome = false; // to the one that is under way
};

} // namespace occl::daemon
