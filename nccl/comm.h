// A communicator of the interface: an OCCL communicator that may not have come together yet.
#pragma once

#include "nccl/config.h"
#include "nccl/errors.h"
#include "nccl/red_ops.h"
#include "nccl/registration.h"
#include "runtime/api/occl.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace occl::nccl {

class HostStream;
class HostEvent;

/// Held by its handle, by the thread that connects it, and by all that is in flight; the OCCL
/// communicator ends with the last of them. Thread safety: any.
class Comm : public std::enable_shared_from_this<Comm> {
public:
  /// Makes the OCCL communicator; blocks until all ranks are there. Null without an error: this
  /// rank is in none.
  using Connect = std::function<Outcome(occlComm_t &comm)>;

  Comm(Config config, int device) : config(config), device(device) {}
  ~Comm();
  Comm(const Comm &) = delete;
  Comm &operator=(const Comm &) = delete;

  /// Size and rank, where they are known before it has connected.
  void setShape(uint32_t numRanks, uint32_t rank);
  /// Begins to connect, in a thread of its own. Once.
  Outcome begin(Connect connect);

  /// Waits until it has connected; the OCCL communicator, valid while *this is. An error if that
  /// has failed, or of the abort.
  Outcome connected(occlComm_t &comm);
  /// Waits only if they are not known.
  Outcome shape(uint32_t &numRanks, uint32_t &rank);
  /// False if they are not known yet.
  bool shapeIfKnown(uint32_t &numRanks, uint32_t &rank) const;

  /// The first error, or one of OCCL's; Success while it connects and after that.
  Outcome asyncError();
  /// An operation has failed: so has the communicator, here and on other ranks.
  void fail(const Outcome &outcome);

  /// Ends what is in flight. If there is nothing, other ranks hear nothing of it.
  void abort();
  bool isAborted() const { return aborted; }
  /// Ends what is in flight, on all ranks; waits until it has connected, for no operation. The
  /// communicator can only be shrunk, aborted and destroyed.
  Outcome endOperations();

  /// For streams that do not say when operations end: from here on abort ends them everywhere.
  void operationsAreUnseen();
  /// Counts what is in flight.
  void operationsBegin();
  void operationsEnd();
  /// Waits until nothing is in flight.
  void waitForOperations();
  /// InvalidArgument the second time.
  Outcome finalize();
  bool isFinalized() const;

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

  Outcome reportOnce(const Outcome &outcome);

  mutable std::mutex mutex;
  std::condition_variable changed;
  State state = State::Connecting;
  std::atomic<bool> aborted = false;
  bool finalized = false, unseen = false, isErrorReported = false;
  bool shapeKnown = false;
  occlComm_t comm = nullptr;
  uint32_t numRanks = 0, rank = 0;
  uint64_t inFlight = 0;
  uint64_t divisionsBegun = 0, divisionsEnded = 0;
  Outcome error;
};

/// The live communicators of the process.
/// Handles are numbers that are never used again, so that one of a destroyed communicator is known
/// as such.
ncclComm_t addHandle(std::shared_ptr<Comm> comm);
/// InvalidArgument for NULL and what is no handle; InvalidUsage in a forked child.
Outcome find(ncclComm_t handle, std::shared_ptr<Comm> &comm);
/// The same; the handle is none any more.
Outcome take(ncclComm_t handle, std::shared_ptr<Comm> &comm);
/// Whether this process is a forked child of the one that has made communicators.
bool isForkedChild();

/// Finds a communicator and runs body(comm), which returns an Outcome, and reports it.
template <class Body> ncclResult_t withComm(const char *function, ncclComm_t handle, Body body) {
  return guarded(function, [&]() -> Outcome {
    std::shared_ptr<Comm> comm;
    Outcome found = find(handle, comm);
    return found.ok() ? body(*comm) : found;
  });
}

} // namespace occl::nccl
