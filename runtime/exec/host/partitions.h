// What stands between a program and a user's buffers that are made, and used, part by part: which
// of the input a step may access by now, and what it has stored of the output.
#pragma once

#include "plan/cover.h"
#include "runtime/exec/reduce/fold_host.h"
#include "runtime/exec/step/step.h"

#include <cstdint>
#include <optional>

namespace occl::interpreter {

/// Ranges are in elements of the rank's own buffer: Input or Output, as Invocation::places has
/// them. Thread safety: any, as the executors of an invocation's thread blocks.
class Partitions {
public:
  virtual ~Partitions() = default;

  /// Nothing if a step may access the range now, and until the invocation ends. Else a partition of
  /// the input that has to be there first.
  virtual std::optional<uint32_t> missing(plan::OperandKind kind, plan::Range elements) = 0;
  /// A step has stored to the range of the output.
  virtual void stored(plan::Range elements) = 0;
  /// Before the invocation begins: it reads this copy of the input, each element of which is to be
  /// scaled.
  virtual void readCopy(char *copy, const Scale &scale) = 0;
};

} // namespace occl::interpreter
