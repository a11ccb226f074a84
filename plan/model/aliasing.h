// How the two buffers of a call may lie to each other, by the alias modes that its plan is valid
// for.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>
#include <string>

namespace occl::plan {

/// The buffers of one rank's calls of one plan with one count. Plain data: copies are cheap and the
/// checks for each call look at nothing else.
///
/// Whether a call is in place is seen by the bytes that its buffers share, not by where they begin:
/// where no chunk of the input is one of the output (as on ranks whose offset lies at the end of
/// the output), nobody can tell in place from out of place, and buffers that lie one behind the
/// other are two buffers.
///
/// Thread safety: immutable; any.
class Aliasing {
public:
  Aliasing() = default;
  /// Expects a plan that verifyPlan has accepted, one of its ranks, and buffers of less than 2^63
  /// bytes. `count` is in elements of a part.
  Aliasing(const Plan &plan, uint32_t rank, uint64_t count, uint64_t elementBytes);

  /// Whether the call is in place: input and output share memory as the collective says. An input
  /// that begins elsewhere in the output is refused by accepts().
  bool isInPlace(const void *input, const void *output) const {
    return sharesInPlace && address(input) == address(output) + static_cast<uint64_t>(inPlaceBytes);
  }

  /// Whether the call is in place by a plan that is not valid so: it has to read a copy of its
  /// input, and is then one out of place.
  bool needsCopy(const void *input, const void *output) const {
    return !mayBeInPlace && isInPlace(input, output);
  }

  /// Whether a call of the plan may have these buffers, with a copy where it needs one. NULL is one
  /// that has no bytes.
  bool accepts(const void *input, const void *output) const {
    if ((!input && inputBytes != 0) || (!output && outputBytes != 0))
      return false;
    return isInPlace(input, output) || (mayBeApart && areApart(input, output));
  }

  /// Why accepts() refuses them: what is wrong and what to do, without a name of the call. Empty if
  /// it does not.
  std::string complaint(const void *input, const void *output) const;

private:
  static uint64_t address(const void *buffer) { return reinterpret_cast<uintptr_t>(buffer); }

  bool areApart(const void *input, const void *output) const {
    return isEitherEmpty || address(input) >= address(output) + outputBytes ||
           address(output) >= address(input) + inputBytes;
  }

  uint64_t inputBytes = 0, outputBytes = 0;
  int64_t inPlaceBytes = 0; // in place, the input begins so far behind the output's begin
  bool isEitherEmpty = true;
  bool sharesInPlace = false; // in place, some byte belongs to both
  bool mayBeInPlace = false, mayBeApart = false;
};

} // namespace occl::plan
