// What a task of the task board executes that is no thread block of a plan: transfers, and epochs
// of partitioned ones.
#pragma once

#include "runtime/base/status.h"
#include "runtime/exec/step/step.h"

#include <cstdint>
#include <string>

namespace occl::transfer {

/// Of one invocation at a time, whose number it is told. Thread safety: run() and error() are for
/// the one thread that has claimed the task; the rest is for any.
class Operation {
public:
  virtual ~Operation() = default;

  /// Goes on, `maxSlices` pieces at most; never waits. As interpreter::runOnHost; an obstacle's
  /// `what` is what of it waits. PeerLost: see error().
  virtual interpreter::StepResult run(interpreter::BlockContext &context, uint32_t maxSlices) = 0;
  /// Why the communicator has to fail; Success if it is for the other rank's loss.
  virtual const Status &error() const = 0;

  /// What it moves, and in which direction.
  virtual bool isSending() const = 0;
  virtual uint64_t bytes() const = 0;

  /// "transfers 5 to 7 from rank 0 to rank 1" of the invocation with this number.
  virtual std::string subject(uint64_t ordinal) const = 0;
  /// "transfer 5, 100 elements of int32, waits for data from rank 1", where `awaited` is what the
  /// obstacle says by itself.
  virtual std::string describe(uint64_t ordinal, const interpreter::Obstacle &obstacle,
                               const std::string &awaited) const = 0;
  /// Of what waits, for other ranks' reports.
  virtual uint64_t numberOf(uint64_t ordinal, uint32_t what) const = 0;
};

} // namespace occl::transfer
