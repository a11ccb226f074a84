// A communicator of the interface: OCCL's or another library's, which may not have come together
// yet.
#pragma once

#include "nccl/base/errors.h"
#include "nccl/bootstrap/unique_id.h"
#include "nccl/calls/red_ops.h"
#include "nccl/calls/registration.h"
#include "nccl/comm/config.h"
#include "runtime/api/occl.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace occl::nccl {

class HostStream;
class HostEvent;
class OtherComm;

/// What executes a communicator's calls: one of the two.
struct Executor {
  occlComm_t own = nullptr;
  std::shared_ptr<OtherComm> other;
  bool isAcross = false; // OCCL's, of ranks on several machines, or made of such a one
};

/// Held by its handle, by the thread that connects it, and by all that is in flight; the executor's
/// communicator ends with the last of them. Thread safety: any.
class Comm : public std::enable_shared_from_this<Comm> {
public:
  /// Makes the executor; blocks until all ranks are there. None without an error: this rank is in
  /// none.
  using Connect = std::function<Outcome(Executor &made)>;

  Comm(Config config, int device) : config(config), device(device) {}
  ~Comm();
  Comm(const Comm &) = delete;
  Comm &operator=(const Comm &) = delete;

  /// Size and rank, where they are known before it has connected.
  void setShape(uint32_t numRanks, uint32_t rank);
  /// Begins to connect, in a thread of its own. Once.
  Outcome begin(Connect connect);

  /// Waits until it has connected; OCCL's communicator is valid while *this is. An error if that
  /// has failed, or of the abort.
  Outcome connected(Executor &with);
  /// The same; OCCL's counts as in flight from then on, until operationsEnd().
  Outcome beginOperations(Executor &with);
  bool isConnecting();
  /// Waits for the end of that no longer than so. Whether it has come, or was aborted.
  bool awaitConnected(std::chrono::steady_clock::time_point until);
  /// As connected(), for a call of the program's. Communicators of the other library are one
  /// thread's at a time, so it waits, too, for what divides one.
  Outcome forCall(Executor &with);
  /// Null as long as it has not connected, or if it is OCCL's: then it does not wait. Else as
  /// forCall().
  std::shared_ptr<OtherComm> otherIfKnown();
  /// Waits only if they are not known.
  Outcome shape(uint32_t &numRanks, uint32_t &rank);
  /// False if they are not known yet.
  bool shapeIfKnown(uint32_t &numRanks, uint32_t &rank) const;

  /// Of the ranges of its calls (support/nvtx); 0 as long as its shape is not known.
  uint32_t category();

  /// The first error, or one of OCCL's; Success while it connects and after that.
  Outcome asyncError();
  /// An operation has failed: so has the communicator, here and on other ranks.
  void fail(const Outcome &outcome);

  /// Ends what is in flight; a division too, that has not ended within three seconds, or a tenth of
  /// one if another communicator's was waited for in vain and this one began that long ago. If
  /// there is nothing, other ranks hear nothing of it; those that still wait for this one to come
  /// hear that it does not.
  void abort();
  bool isAborted() const { return aborted; }
  /// When nobody calls it any more: destroys the other library's communicator on this thread,
  /// unless an operation is in flight that will do so.
  void destroyOther();
  /// Ends what is in flight, on all ranks; waits until it has connected, for no operation. The
  /// communicator can only be shrunk, aborted and destroyed.
  Outcome endOperations();

  /// Counts what is in flight.
  void operationsBegin();
  void operationsEnd();
  /// Waits until nothing is in flight.
  void waitForOperations();
  /// InvalidArgument the second time.
  Outcome finalize();
  bool isFinalized() const { return finalized; }

  /// The calls of divide() of a communicator run one after the other, on its threads: each waits
  /// for the one before. Returns what to call before and after.
  struct Turn {
    std::shared_ptr<Comm> comm;
    uint64_t number = 0;
    void await() const;
    void end() const;
  };
  Turn nextDivision();

  const Config config;
  const int device;
  /// Set before it has a handle; what it was divided into and grew to so far, by this rank.
  Lineage lineage;
  std::atomic<uint64_t> numSplit = 0, numShrunk = 0, numGrown = 0;

  RedOps redOps;
  Registrations registrations;

  /// For hosts: the stream in the place of NULL, shared with the communicators made of this one,
  /// set before it has a handle; and the end of the latest batch with the stream that it is in,
  /// of host_execution.cpp, under its lock.
  std::shared_ptr<HostStream> ownStream;
  std::shared_ptr<HostEvent> latest;
  std::weak_ptr<HostStream> latestStream;

private:
  enum class State { Connecting, Connected, Failed };

  void connectBy(Connect connect);
  Outcome connected(std::unique_lock<std::mutex> &lock, Executor &with);
  Outcome reportOnce(const Outcome &outcome);
  void awaitDivisions(std::unique_lock<std::mutex> &lock);

  std::mutex mutex;
  std::condition_variable changed;
  State state = State::Connecting;
  std::atomic<bool> aborted = false, finalized = false;
  bool isErrorReported = false;
  Executor executor;
  std::atomic<bool> shapeKnown = false; // from then on the two do not change
  uint32_t numRanks = 0, rank = 0;
  uint64_t inFlight = 0;
  uint32_t rangeCategory = 0;
  uint64_t divisionsBegun = 0, divisionsEnded = 0;
  std::chrono::steady_clock::time_point lastDivision; // when it was begun
  Outcome error;
};

} // namespace occl::nccl
