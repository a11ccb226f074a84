// A partitioned send or receive of a rank, and what an executor does for its present epoch. Nothing
// here waits.
#pragma once

#include "runtime/invocation/exchange.h"
#include "runtime/partitioned/arrivals.h"
#include "runtime/partitioned/matching.h"
#include "runtime/partitioned/ready_marks.h"
#include "runtime/partitioned/shape.h"
#include "runtime/sched/core.h"
#include "runtime/transfer/operation.h"

#include <cstdint>
#include <memory>
#include <string>

namespace occl::partitioned {

/// What the program says of a request. The buffer is its own.
struct Terms {
  bool isSend = false;
  uint32_t peer = 0;
  uint64_t tag = 0;
  Shape shape;
  char *buffer = nullptr;
  interpreter::Reference reference = 0; // of a send: by which the peer reads the buffer
};

/// From its start to its end.
struct Epoch {
  daemon::Exchange exchange;
  daemon::OpenInvocation invocation;
  daemon::BlockTask task;
};

/// Thread safety: what is said of Requests; run() and error() as of Operation.
class Request : public transfer::Operation {
public:
  Request(daemon::Core &core, Matching &matching, const Terms &terms);

  const Status &error() const override { return failure; }
  bool isSending() const override { return party.isSend; }
  uint64_t bytes() const override { return party.shape.bytes(); }
  std::string subject(uint64_t ordinal) const override;
  uint64_t numberOf(uint64_t ordinal, uint32_t) const override { return ordinal; }

  /// "partitioned send from rank 0 to rank 1, tag 5", for errors.
  std::string describe() const;
  /// Whether the peer has begun this epoch, as far as this rank knows.
  bool hasPeerStarted(uint64_t ofEpoch) const;
  /// The same, with what the peer has told since; of an epoch whose task has ended. InProgress: not
  /// yet; else why it never will.
  Status lookForStart(uint64_t ofEpoch);
  Doorbell &peerBell() const { return matching.bellOf(party.peer); }
  /// Those of the send; 0 while a receive is not matched with it. For any thread.
  uint64_t numMessages() const;

  Party party;
  daemon::IdState sequence; // of its epochs
  /// The epoch that has been started and not been waited for; 0 without one.
  Atomic<uint64_t> active{0};
  // Of the thread that starts, tests, waits and frees.
  uint64_t epoch = 0; // the last one
  std::unique_ptr<Epoch> current;

protected:
  /// Null while it is not matched. PeerLost is to be returned if `failure` is set.
  const Counterpart *lookForCounterpart();
  /// The peer starts no more, and will not do what this epoch waits for.
  interpreter::StepResult abandoned();
  interpreter::StepResult damaged();
  interpreter::StepResult lost() const {
    return {interpreter::StepStatus::PeerLost, {interpreter::BlockReason::Data, 0, party.peer}, 0};
  }
  interpreter::StepResult blocked(interpreter::BlockReason reason, uint64_t what,
                                  uint32_t slices) const {
    return {interpreter::StepStatus::Blocked,
            {reason, static_cast<uint32_t>(what), party.peer},
            slices};
  }

  daemon::Core &core;
  Matching &matching;
  /// Whether an address of the peer is one of this rank.
  const bool sharesAddresses;
  Status failure;
};

/// The program marks its partitions; its epoch ends when the receiver has read all.
class SendRequest final : public Request {
public:
  SendRequest(daemon::Core &core, Matching &matching, const Terms &terms)
      : Request(core, matching, terms), marks(terms.shape) {}
  /// Once the party has them.
  void useWords();

  interpreter::StepResult run(interpreter::BlockContext &context, uint32_t maxSlices) override;
  std::string describe(uint64_t ordinal, const interpreter::Obstacle &obstacle,
                       const std::string &awaited) const override;
  using Request::describe;

  ReadyMarks marks;

private:
  uint64_t markedBelow = 0, markedIn = 0; // of the run: so many are in that epoch
};

/// Its epoch ends when all data have been read.
class ReceiveRequest final : public Request {
public:
  ReceiveRequest(daemon::Core &core, Matching &matching, const Terms &terms)
      : Request(core, matching, terms), arrivals(terms.shape), buffer(terms.buffer) {}

  interpreter::StepResult run(interpreter::BlockContext &context, uint32_t maxSlices) override;
  std::string describe(uint64_t ordinal, const interpreter::Obstacle &obstacle,
                       const std::string &awaited) const override;
  using Request::describe;

  Arrivals arrivals;

private:
  /// What is read at once of neighbouring messages, and, of a message that is larger, between two
  /// looks whether the sender has failed.
  static constexpr uint64_t kPieceBytes = 256 << 10;

  bool bind(const Counterpart &sender);
  interpreter::StepResult complete(uint32_t slices);
  bool isReady(const Counterpart &sender, uint64_t message);
  plan::Range readyFrom(const Counterpart &sender, uint64_t message);
  bool read(const Counterpart &sender, plan::Range messages, uint32_t &slices, uint32_t maxSlices);

  char *const buffer;
  bool isBound = false;
  // Of a message that has been read in part.
  plan::Range partial;
  uint64_t readBytes = 0;
};

} // namespace occl::partitioned
