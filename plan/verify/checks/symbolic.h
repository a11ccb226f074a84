// Symbolic execution of a plan in one alias mode.
#pragma once

#include "plan/verify/checks/locations.h"
#include "plan/verify/checks/value.h"

#include <cstdlib>
#include <memory>

namespace occl::plan::verify {

class Symbolic {
public:
  /// Called for every value that an instruction reduces: the result's number and the origin of the
  /// source: a result's number, or kEntry | the location that still held its entry value.
  static constexpr uint32_t kEntry = 1u << 31;
  struct Step {
    uint32_t result;
    uint32_t source;
  };

  Symbolic(const Network &network, AliasMode mode, const Keys &keys);

  /// Executes everything in `order`. An error if an instruction reads what is undefined, reduces
  /// what is final, moves a value to where its size does not fit, or writes to the input out of
  /// place. If `steps` is given, they are recorded.
  Finding run(const std::vector<uint32_t> &order, std::vector<Step> *steps = nullptr);

  const Locations &locations() const { return where; }
  /// What a location holds now; numContributions is 0 if it is undefined.
  Value valueAt(uint32_t rank, uint32_t location) const;
  /// Results are numbered instruction by instruction, chunk by chunk; this is the instruction of
  /// one.
  uint32_t instructionOf(uint32_t result) const;

private:
  Finding execute(uint32_t index, std::vector<Step> *steps);
  Finding reduce(uint32_t index, uint32_t chunk, std::vector<Step> *steps, Value &result);
  Finding checkSource(uint32_t index, uint32_t chunk, const Operand &source, const Value &value);
  Finding checkDestination(uint32_t index, const Operand &destination);
  uint32_t extentOf(const Instruction &instruction, uint32_t chunk) const {
    return (instruction.extent + chunk) % plan.partChunks;
  }
  VerifyError error(uint32_t index, Code code, std::string message) const;

  const Plan &plan;
  const Network &network;
  AliasMode mode;
  const Keys &keys;
  Locations where;
  // Untouched pages of calloc's memory cost nothing: buffers may be much larger than what a plan
  // uses of them.
  struct Free {
    void operator()(Value *values) const { std::free(values); }
  };
  std::unique_ptr<Value[], Free> memory;
  std::unique_ptr<Value[], Free> messages;
  std::vector<uint32_t> firstValue;  // of each message (an index in Network::sends), in `messages`
  std::vector<uint32_t> firstResult; // of each instruction
};

} // namespace occl::plan::verify
