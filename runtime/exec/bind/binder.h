// How bind() goes about it; for bind.cpp and its parts alone.
#pragma once

#include "plan/model/chunking_of.h"
#include "runtime/base/cache_line.h"
#include "runtime/exec/bind/bind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

namespace occl::interpreter {

/// Fills a Binding, phase by phase.
class Binder {
public:
  Binder(const plan::Plan &plan, const BindRequest &request, std::pmr::memory_resource *memory)
      : plan(plan), request(request), rankPlan(plan.ranks[request.rank]),
        chunking(plan::chunkingOf(plan, request.count, sizeOf(request.type))),
        grain(plan::kGrainBytes / sizeOf(request.type)), size(sizeOfRank()),
        binding(new Binding(expectedBytes(), memory)) {}

  StatusOr<std::shared_ptr<const Binding>> run() {
    setScalars();
    if (Status status = checkSizes(); !status.ok())
      return status;
    measureMessages();
    if (Status status = layOutMessages(); !status.ok())
      return status;
    setSizes();
    if (Status status = bindBlocks(); !status.ok())
      return status;
    resolveSteps();
    finish();
    groupInstructions();
    makeStepTables();
    return std::shared_ptr<const Binding>(std::move(binding));
  }

private:
  /// A tail and its slots.
  struct Mailbox {
    uint32_t rank = 0; // in whose arena
    uint64_t tailOffset = 0, slotsOffset = 0;
  };
  /// Where a connection lies and how large it is; the same on all ranks.
  struct Layout {
    uint64_t headsOffset = 0, slotBytes = 0;
    uint32_t firstMailbox = 0; // one, or one for each destination
    uint32_t maxCount = 0;
    uint32_t messagesPerTile = 0;
    bool mayRefer = false;
  };

  /// Of this rank's part of the plan.
  struct Size {
    size_t instructions = 0, operands = 0, messages = 0; // operands that are messages
  };
  Size sizeOfRank() const;
  size_t expectedBytes() const;
  void setScalars();
  void measureMessages();
  Status layOutMessages();
  void chooseTiles();
  void chooseLines();
  uint64_t lineBytes(uint64_t dataBytes) const;
  Status refuseCount(const std::string &makes) const;
  Status checkSizes() const;
  Status checkMessages() const;
  void setSizes();
  void layOutArenas();
  void findReferences();
  void findCopies();
  bool mayHaveReferences() const;
  bool isOneCopyEach() const;
  bool staysAsItIs(uint32_t rank, const plan::Instruction &instruction,
                   const plan::Operand &operand) const;
  bool staysInPlace(const plan::Instruction &instruction, const plan::Operand &operand) const;
  bool isSourceInPlace(uint32_t rank, const plan::Instruction &instruction,
                       const plan::Operand &operand) const;
  void countStores(uint32_t rank, const plan::Instruction &instruction);
  const plan::Operand *referredTo(uint32_t rank, const plan::Instruction &instruction) const;
  void layOutCounters();
  uint64_t lastCredit(size_t connection) const;
  void reserveTables();
  Status bindBlocks();
  Status bindInstruction(const plan::Instruction &instruction, uint32_t block);
  void bindOperand(const plan::Instruction &instruction, const plan::Operand &operand,
                   bool isSource);
  void bindReference(const plan::Instruction &instruction, BoundInstruction &bound) const;
  void resolveSteps();
  void resolveOperand(BoundInstruction &bound, uint32_t operand, bool isSource);
  void resolveSource(BoundInstruction &bound, uint32_t operand, const ConnectionEnd &end);
  void resolveDestination(BoundInstruction &bound, uint32_t operand, const ConnectionEnd &end);
  void resolveDependencies(const plan::Instruction &instruction, uint32_t block);
  void pushNeed(BoundInstruction &bound, uint32_t rank, uint32_t connection);
  void groupInstructions();
  void makeStepTables();
  bool isToBeGrouped(const BoundBlock &block) const;
  void groupSteps(const BoundBlock &block);
  bool mayBeGrouped(const BoundInstruction &bound) const;
  bool arePlainLines(const BoundBlock &block) const;
  bool canGroupLines(const BoundBlock &block) const;
  bool waitsForLines(const BoundInstruction &bound) const;
  bool fitsInLines(uint32_t leader, uint32_t next) const;
  bool mayJoin(uint32_t leader, uint32_t member) const;
  bool areIndependent(const BoundInstruction &a, const BoundInstruction &b) const;
  bool storeTheSameWord(const BoundInstruction &a, const BoundInstruction &b) const;
  bool mayOverlap(const BoundOperand &a, uint64_t aBytes, const BoundOperand &b,
                  uint64_t bBytes) const;
  void pushWait(uint32_t connection, uint32_t value);
  uint32_t receivingEnd(uint32_t connection);
  uint32_t sendingEnd(uint32_t connection, uint32_t mailbox);
  uint32_t makeEnd(uint32_t connection, uint32_t mailbox, uint32_t head,
                   std::span<const uint32_t> others);
  void pushMessage(uint32_t end);
  /// Mailboxes of a connection.
  uint32_t numMailboxes(const plan::Connection &connection) const {
    return isAtSource() ? 1 : connection.numDestinations;
  }
  bool isAtSource() const { return request.placement == Placement::AtSource; }
  bool hasLines() const { return binding->bound.line.bytes != 0; }
  bool isCounter(size_t connection) const { return plan.connections[connection].isCounter; }
  void finish();

  /// Elements of a chunk such that `count` chunks have about as many bytes as a message should.
  uint64_t sliceOf(uint32_t count) const {
    uint64_t wanted = messageBytes / (count * binding->bound.elementBytes);
    return std::max(wanted / grain, uint64_t(1)) * grain;
  }

  uint64_t messageElements(uint32_t count) const {
    return count * std::min(binding->bound.tileElements, chunking.maxSize());
  }
  uint64_t sliceElements(uint32_t count) const {
    const Program &program = binding->bound;
    if (hasLines())
      return program.stageStride / program.elementBytes;
    uint64_t message = messageElements(count);
    uint64_t slice = (message + program.slicesPerMessage - 1) / program.slicesPerMessage;
    return std::max<uint64_t>(alignUp(slice, grain), 1);
  }

  const plan::Plan &plan;
  const BindRequest &request;
  const plan::RankPlan &rankPlan;
  const plan::Chunking chunking;
  const uint64_t grain; // elements of 128 bytes
  const Size size;
  std::unique_ptr<Binding> binding;
  /// Of what the phases tell each other: of small plans here.
  std::array<std::byte, 8 << 10> room;
  std::pmr::monotonic_buffer_resource notes{room.data(), room.size()};
  std::pmr::vector<Layout> layouts{&notes}; // by connection
  std::pmr::vector<Mailbox> mailboxes{&notes};
  static constexpr uint32_t kNoEnd = ~0u;
  std::pmr::vector<uint32_t> receivingEnds{&notes}, sendingEnds{&notes}; // by connection; mailbox
  uint32_t maxCount = 0;     // chunks of the largest message; 0 if there is none
  uint64_t messageBytes = 0; // of a tile's largest message, about
  using Flags = std::pmr::vector<bool>;
  Flags accessed = Flags(&notes), usesArena = Flags(&notes); // by rank: another one's buffers
                                                             // directly; its arena
  /// How many instructions store to a chunk of an output, and how many of these do not just copy
  /// the input chunk that lies in the same place in place.
  struct Stores {
    uint32_t all = 0, others = 0;
  };
  /// By bound instruction: in place it stores nothing in the output but what is there.
  Flags staysInOutput = Flags(&notes);
  std::vector<std::vector<Stores>> stores; // by rank; empty if there are no references
  /// By connection and message of a tile: all its receivers do nothing but copy it. As `stores`.
  std::vector<std::vector<bool>> isCopied;
};

} // namespace occl::interpreter
