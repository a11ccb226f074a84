// Trust in a plan, from whatever source, begins here: verifyPlan proves that it is well formed,
// that its messages match, that it cannot deadlock, that it has no race and reads nothing
// undefined, that it computes its collective, and that no access outlives its buffer; or it says
// what is wrong, where, with a witness. It shares no code with the compiler but the list of
// standard collectives, which a test compares with the prelude. What it cannot prove it rejects.
// docs/plan.md states the six proofs.
//
// Time and memory are near linear in the plan's size (limits: plan/model/limits.h). Thread safe: no
// state but the plan's.
#pragma once

#include "plan/model/limits.h"
#include "plan/model/plan.h"
#include "plan/verify/code.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::plan {

/// How input and output lie in memory.
enum class AliasMode : uint8_t { OutOfPlace, InPlace };

/// A line of a witness: a sentence about an instruction, or about none.
struct Note {
  std::string text; // with the source line, if there is one
  std::optional<Place> place = {};
  uint32_t location = kNoLocation; // in Plan::locations
};

struct VerifyError {
  Code code = Code::CannotVerify;
  std::string message;
  /// The instruction at fault and the line that it comes from (in Plan::locations), where one is.
  std::optional<Place> place = {};
  uint32_t location = kNoLocation;
  /// The alias mode in which it fails, where that matters.
  std::optional<AliasMode> mode = {};
  /// What convinces: the cycle of waits, the two accesses, the way of the data.
  std::vector<Note> witness = {};
  /// Of what is no instruction: where it stands in a plan file, as "depth" or "connections[3]".
  std::string path = {};

  Proof proof() const { return proofOf(code); }
};

/// What was proved, and of how much.
struct VerifyFacts {
  bool outOfPlace = false;
  bool inPlace = false;
  /// False: everything but the result was proved, as the plan has no postcondition.
  bool result = true;
  /// The smallest depth, equal on all connections, at which the plan cannot deadlock; at most the
  /// plan's own depth. 0 if it was not asked for.
  uint32_t smallestDepth = 0;
  uint64_t instructions = 0;
  uint64_t messages = 0; // sent; a multicast counts once
  uint64_t signals = 0;
  uint64_t connections = 0;
  uint64_t dependencies = 0;
  uint32_t threadBlocks = 0; // of the rank that has most
  /// Orders through other ranks that no witness gave, so that they had to be searched for.
  uint64_t searchedOrders = 0;
};

struct VerifyOptions {
  bool findSmallestDepth = true;
  Limits limits = {};
};

struct VerifyResult {
  std::optional<VerifyError> error;
  VerifyFacts facts; // only without error

  bool isOk() const { return !error; }
  explicit operator bool() const { return isOk(); }
  /// For people, of several lines: the error with place and witness, or the facts.
  std::string text() const;
};

VerifyResult verifyPlan(const Plan &plan, const VerifyOptions &options = {});

} // namespace occl::plan
