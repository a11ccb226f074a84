// A communicator of the other NCCL.
#pragma once

#include "nccl/comm/config.h"
#include "nccl/fallback/library.h"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace occl::nccl {

/// It is made such that none of its calls blocks for ever, whatever the program has asked for, so
/// that what others say can end it; calls that go on in the background are waited for here. Ends
/// with the last that holds it. Thread safety: as of the other library's communicators.
class OtherComm {
public:
  /// Asked again and again while it is made: an error ends it.
  using Failure = std::function<Outcome()>;

  /// Waits until all ranks have it.
  static Outcome make(const OtherNccl &nccl, const Config &config, uint32_t numRanks, uint32_t rank,
                      const ncclUniqueId &id, const Failure &failure,
                      std::shared_ptr<OtherComm> &made);
  ~OtherComm();
  OtherComm(const OtherComm &) = delete;
  OtherComm &operator=(const OtherComm &) = delete;

  /// Null for a rank without colour.
  Outcome split(int colour, int key, const Config &config, const Failure &failure,
                std::shared_ptr<OtherComm> &made);
  Outcome shrink(const std::vector<int> &excluded, int flags, const Config &config,
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
  OtherComm(const OtherNccl &nccl) : nccl(nccl) {}
  Outcome settle(ncclResult_t result, const Failure &failure) const;
  /// Of a call that has stored into made->comm. Null with an error, or without a communicator.
  static Outcome finish(ncclResult_t result, const Failure &failure,
                        std::shared_ptr<OtherComm> &made);

  ncclComm_t comm = nullptr;
  std::atomic<bool> aborted = false, finalized = false;
};

} // namespace occl::nccl
