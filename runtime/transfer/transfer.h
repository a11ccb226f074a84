// Transfers between two ranks: the sends to one rank, or receives from one, of a call or a group,
// and how an executor takes them further, visit by visit. Nothing here waits.
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/exec/step/step.h"
#include "runtime/transfer/operation.h"
#include "runtime/transfer/pair_ring.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::transfer {

/// Data of at most so many bytes go through the ring, whose room a send needs and nothing else.
/// Larger ones are read where they lie, if the receiver can.
inline constexpr uint64_t kEagerBytes = 64 << 10;

/// One send or receive. The buffer is the caller's.
struct Part {
  char *buffer = nullptr;
  uint64_t count = 0;
  DataType type = DataType::Uint8;
  uint64_t position = 0; // of a send: behind its line, once that is in the ring

  uint64_t bytes() const { return count * sizeOf(type); }
};

class End;

/// Those of a call or a group in one direction of a pair, in order. Their thread block stands at
/// part `BlockContext::instruction`; `tile` bytes of that are done; `slice` is 1 once its line is.
class Parts final : public Operation {
public:
  interpreter::StepResult run(interpreter::BlockContext &context, uint32_t maxSlices) override;
  const Status &error() const override;
  bool isSending() const override;
  uint64_t bytes() const override;
  std::string subject(uint64_t ordinal) const override;
  std::string describe(uint64_t ordinal, const interpreter::Obstacle &obstacle,
                       const std::string &awaited) const override;
  uint64_t numberOf(uint64_t ordinal, uint32_t what) const override { return ordinal + what; }

  End *end = nullptr;       // which they go through
  uint64_t firstNumber = 0; // of the pair's transfers
  std::vector<Part> parts;
};

/// Copies data that lie in memory of rank `peer` at a reference which that rank has given; whether
/// addresses of that rank are good here is the caller's to know. Between threads the sender waits,
/// should it fail, until nobody is at this (Fabric::beginAccess); between processes data do not
/// count that may have changed before they were read: false, with errno.
bool readReferred(const daemon::Fabric &fabric, uint32_t peer, bool sharesAddresses, char *to,
                  interpreter::Reference from, uint64_t bytes);
/// After that: whether it was memory of rank `peer` that was read, since a process that is alive
/// now is the one that was read. False, with errno.
bool wasReadOf(const daemon::Fabric &fabric, uint32_t peer, bool sharesAddresses);

/// That a visit counts for so many bytes.
constexpr uint32_t slicesIn(uint64_t bytes) {
  constexpr uint64_t kSliceBytes = 64 << 10;
  return static_cast<uint32_t>((bytes + kSliceBytes - 1) / kSliceBytes);
}

/// This rank's end of the transfers to, or from, one rank. Thread safety: one thread at a time,
/// that has claimed the task of the parts; those of one end are run one after the other.
class End {
public:
  virtual ~End() = default;

  /// Goes on with the parts, `maxSlices` pieces at most. As interpreter::runOnHost; an obstacle's
  /// `what` is the part that waits. PeerLost: see error().
  virtual interpreter::StepResult run(Parts &parts, interpreter::BlockContext &context,
                                      uint32_t maxSlices) = 0;
  /// Why the communicator has to fail; Success if it is for the other rank's loss.
  const Status &error() const { return failure; }

  const transport::Pair pair;
  const bool isSend;

protected:
  /// `selfBell`: the doorbell of this rank's own executors.
  End(const daemon::Fabric &fabric, bool isSend, uint32_t peer, Doorbell &selfBell);

  interpreter::StepResult progressed(uint32_t slices) const {
    return {interpreter::StepStatus::Progressed, {}, slices};
  }
  interpreter::StepResult blocked(interpreter::BlockReason reason, uint32_t part,
                                  uint32_t slices) const {
    return {interpreter::StepStatus::Blocked, {reason, part, peer}, slices};
  }
  interpreter::StepResult lost() const {
    return {interpreter::StepStatus::PeerLost, {interpreter::BlockReason::Data, 0, peer}, 0};
  }
  interpreter::StepResult damaged(const char *what);
  /// "transfer 5 from rank 0 to rank 1".
  std::string describe(uint64_t number) const;
  static void finishPart(interpreter::BlockContext &context);
  /// After a tail or a head was stored.
  void ringPeer() const { bell.ring(); }

  const daemon::Fabric &fabric;
  const uint32_t peer;
  /// Whether an address of the other rank is one of this rank.
  const bool sharesAddresses;
  Status failure;

private:
  Doorbell &bell;
};

/// Of transfers to rank `pair.destination`; this is rank `pair.source`.
class SendEnd final : public End {
public:
  SendEnd(const daemon::Fabric &fabric, uint32_t destination, Doorbell &selfBell);

  interpreter::StepResult run(Parts &parts, interpreter::BlockContext &context,
                              uint32_t maxSlices) override;

private:
  /// 0: nowhere that the receiver could read it.
  interpreter::Reference referenceTo(const Part &part) const;
  uint32_t firstUnread(const Parts &parts) const;
  interpreter::StepResult runParts(Parts &parts, interpreter::BlockContext &context,
                                   uint32_t maxSlices);
  void publish();

  RingSource ring;
  /// Once the destination has come so far it reads none of this rank's buffers.
  uint64_t referredUpTo = 0;
};

/// Of transfers from rank `pair.source`; this is rank `pair.destination`.
class ReceiveEnd final : public End {
public:
  ReceiveEnd(const daemon::Fabric &fabric, uint32_t source, Doorbell &selfBell);

  interpreter::StepResult run(Parts &parts, interpreter::BlockContext &context,
                              uint32_t maxSlices) override;

private:
  interpreter::StepResult runParts(Parts &parts, interpreter::BlockContext &context,
                                   uint32_t maxSlices);
  bool accept(const Line &line, const Part &part, uint64_t number);
  void release();

  RingSink ring;
  interpreter::Reference reference = 0; // of the part whose line has been read
};

} // namespace occl::transfer
