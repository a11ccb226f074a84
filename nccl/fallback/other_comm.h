// A communicator of the other NCCL.
#pragma once

#include "nccl/comm/config.h"
#include "nccl/fallback/library.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace occl::nccl {

/// As blocking as the program wants it. What calls of one that does not block leave in the
/// background is waited for here. Ends with the last that holds it. Thread safety: as of the other
/// library's communicators.
class OtherComm {
public:
  /// Asked again and again while it is made: an error ends it.
  using Failure = std::function<Outcome()>;

  struct Place {
    uint32_t numRanks, rank;
    int device;
    ncclUniqueId id;
  };
  /// Waits until all ranks have it, or for a failure: then a thread stays in the other library for
  /// as long as that waits for the others.
  static Outcome make(const OtherNccl &nccl, const Config &config, const Place &place,
                      const Failure &failure, std::shared_ptr<OtherComm> &made);
  ~OtherComm();
  OtherComm(const OtherComm &) = delete;
  OtherComm &operator=(const OtherComm &) = delete;

  /// Null for a rank without colour.
  Outcome split(int colour, int key, const Config &config, const Failure &failure,
                std::shared_ptr<OtherComm> &made);
  Outcome shrink(const std::vector<int> &excluded, int flags, const Config &config,
                 const Failure &failure, std::shared_ptr<OtherComm> &made);

  /// Of a rank of `parent`, or, if that is NULL, of a new rank.
  static Outcome grow(const OtherNccl &nccl, ncclComm_t parent, int numRanks,
                      const std::optional<ncclUniqueId> &id, int rank, const Config &config,
                      const Failure &failure, std::shared_ptr<OtherComm> &made);

  Outcome shape(uint32_t &numRanks, uint32_t &rank) const;
  Outcome asyncError() const;
  Outcome finalize(bool isWaitedFor);
  void abort();
  /// Waits for what a call of it, which has just returned this, has left in the background.
  Outcome settle(ncclResult_t result) const;

  const OtherNccl &nccl;
  ncclComm_t handle() const { return comm; }

private:
  OtherComm(const OtherNccl &nccl, bool isBlocking) : nccl(nccl), isBlocking(isBlocking) {}
  Outcome settle(ncclResult_t result, const Failure &failure) const;
  /// Of a call that has stored into made->comm. Null with an error, or without a communicator.
  static Outcome finish(ncclResult_t result, const Failure &failure,
                        std::shared_ptr<OtherComm> &made);

  Outcome poll(ncclResult_t &state) const;

  const bool isBlocking;
  ncclComm_t comm = nullptr;
  /// Held where the communicator is asked by threads that nobody orders behind what aborts it, and
  /// so frees it.
  mutable std::mutex living;
  std::atomic<bool> aborted = false, finalized = false;
};

} // namespace occl::nccl
