// The messages of a scheduled program, and how each gets to its receivers when some of them become
// direct accesses.
#pragma once

#include "compiler/passes/direct/DirectTransfers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace occl::passes {

/// How a message gets to its receivers.
enum class Way : uint8_t { Connection, Load, Store };

/// Why a message stays one: what counts it.
using Reason = uint64_t KeptMessages::*;

struct Message {
  StepRef sender;
  llvm::SmallVector<StepRef, 2> receivers;
  Way way = Way::Connection;
  Reason reason = &KeptMessages::nowhere; // if it is not sent another way
};

bool isPlainSend(const inst::Instruction &instruction);
bool isPlainReceive(const inst::Instruction &instruction);
/// Where the sender of a message has what it sends, or null.
const inst::Place *valueOf(const inst::Instruction &sender);

class DirectMessages {
public:
  /// Keeps references to program and options. `reasons` has, for each connection or only for the
  /// first ones, why its messages stay if nobody finds another reason.
  DirectMessages(const analysis::Program &program, const DirectOptions &options,
                 llvm::ArrayRef<Reason> reasons);

  const analysis::Program &program;
  const DirectOptions &options;

  const inst::Instruction &at(StepRef ref) const {
    return program.ranks[ref.rank].steps[ref.step].instruction;
  }
  template <typename Function> void forEachStep(Function fn) const {
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i)
        fn(StepRef{r, i});
  }
  /// The number of a step among those of all ranks, and how many there are.
  uint32_t flat(StepRef ref) const { return firstStep[ref.rank] + ref.step; }
  uint32_t numSteps() const { return firstStep.back(); }

  size_t size() const { return messages.size(); }
  const Message &operator[](uint32_t message) const { return messages[message]; }
  /// The messages of a step: as its sources have them, then as its destinations do.
  llvm::ArrayRef<uint32_t> of(StepRef ref) const { return messagesOf[flat(ref)]; }
  llvm::SmallVector<Way, 4> waysOf(StepRef ref) const;

  /// Gives each message the first way that it may take.
  void begin();
  /// Takes back how a message goes, and tries the next way, unless it goes through its connection
  /// already.
  void demote(uint32_t message, Reason reason);
  /// How often that took something back.
  size_t numDemoted() const { return numTakenBack; }

  bool hasDirect() const;
  /// The connections that still carry messages, by index.
  std::vector<bool> usedConnections() const;
  /// Why the first message that a connection still carries stays.
  Reason reasonOf(size_t connection) const;
  /// Of the messages that some receiver could have loaded, or the sender stored.
  KeptMessages kept() const;

private:
  void collect();
  bool isOfOneGroup(const Message &message) const;
  bool canStore(const Message &message) const;
  bool canLoad(const Message &message) const;

  std::vector<uint32_t> firstStep = {0}; // of each rank
  std::vector<Message> messages;
  size_t numTakenBack = 0;
  std::vector<uint32_t> firstMessage;                     // of each connection, and the end
  std::vector<llvm::SmallVector<uint32_t, 2>> messagesOf; // of each step
};

} // namespace occl::passes
