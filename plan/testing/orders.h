// Which instructions are ordered, found by brute force over the events of all instructions: what
// the race proof of verifyPlan is tested against. Shares no code with the verifier.
#pragma once

#include "plan/model/plan.h"

#include <optional>
#include <utility>
#include <vector>

namespace occl::plan::testing {

class Orders {
public:
  /// Of a plan of good shape whose messages match.
  explicit Orders(const Plan &plan);

  /// Whether two accesses of one location by the instructions, one of them a write, are unordered.
  bool isRace(uint32_t first, uint32_t second, bool inPlace) const;

  /// Two instructions that race; quadratic.
  std::optional<std::pair<uint32_t, uint32_t>> findRace(bool inPlace) const;

private:
  /// The begin of instruction i is event 2 i, its end 2 i + 1.
  using Event = uint32_t;
  struct Access {
    uint64_t location;
    uint32_t chunk;
    bool isWrite;
  };

  void addMessages();
  std::vector<bool> eventsAfter(Event event) const;
  std::vector<bool> inStepAfter(uint32_t instruction) const;
  std::vector<Access> accessesOf(uint32_t instruction, bool inPlace) const;
  bool conflicts(uint32_t first, uint32_t second, bool inPlace, bool firstInStepBefore,
                 bool secondInStepBefore) const;

  const Plan &plan;
  std::vector<uint32_t> rankOf;                 // of each instruction
  std::vector<std::vector<Event>> successors;   // of each event
  std::vector<std::vector<uint32_t>> receivers; // of each instruction: of its ordered messages
};

} // namespace occl::plan::testing
