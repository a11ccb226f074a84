// One execution of a plan on what is known of its values besides their content.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace occl::interchange {

class ValueFlow {
public:
  static constexpr uint32_t kNone = ~0u;

  /// What is known of one chunk's value.
  struct Value {
    uint32_t extent = kNone; // which chunk of a part it is; kNone: undefined
    /// The reduction that made it, a number of a result; kNone: none since entry.
    uint32_t reduction = kNone;
  };

  /// Expects what annotate() expects.
  explicit ValueFlow(const plan::Plan &plan);

  /// Executes all that can run, with connections that are never full.
  void run();

  /// The extent of each instruction; kNone where it did not run.
  const std::vector<uint32_t> &extents() const { return extent; }
  /// Whether some chunk was used as another chunk of a part than it is.
  bool mixesExtents() const { return isMixed; }
  /// Whether a result was an operand of a reduction.
  bool isReducedFurther(uint32_t result) const { return isReduced[result]; }
  /// What a rank's output chunk holds now.
  Value outputAt(uint32_t rank, uint32_t chunk) const {
    return valueAt(rank, plan::OperandKind::Output, chunk);
  }
  /// Results are numbered instruction by instruction, chunk by chunk: the first one of each
  /// instruction.
  const std::vector<uint64_t> &firstResults() const { return firstResult; }

private:
  struct Queue {
    std::vector<Value> values;    // of all messages so far
    std::vector<uint32_t> counts; // of each message
  };
  /// One receiving end of a connection.
  struct End {
    size_t message = 0, value = 0; // the next ones
    uint32_t waiting = kNone;      // the thread block that waits for it
  };

  size_t locate(uint32_t rank, plan::OperandKind kind, uint32_t chunk) const;
  uint32_t endOf(uint32_t connection, uint32_t rank) const;
  Value valueAt(uint32_t rank, plan::OperandKind kind, uint32_t chunk) const;
  bool canRun(uint32_t block, uint32_t index);
  void execute(uint32_t block, uint32_t index);
  Value reduce(uint32_t rank, const plan::Instruction &instruction, uint32_t chunk);
  void finish(uint32_t index);
  void wake(uint32_t &waiting);

  const plan::Plan &plan;
  std::vector<size_t> first; // location of each rank
  /// What was written. Buffers may be much larger than what a plan uses of them.
  std::unordered_map<size_t, Value> memory;
  std::vector<Queue> queues;        // of each connection
  std::vector<End> ends;            // of each destination of each connection
  std::vector<uint32_t> rankOf;     // of each thread block
  std::vector<uint32_t> next;       // instruction of each thread block, from 0
  std::vector<uint32_t> nextWaiter; // of each thread block: who waits for the same instruction
  std::vector<uint32_t> waiters;    // of each instruction: the first thread block that waits
  std::vector<bool> isDone;         // of each instruction
  std::vector<uint32_t> ready;      // thread blocks to look at
  std::vector<uint32_t> extent;
  std::vector<uint64_t> firstResult;
  std::vector<bool> isReduced; // of each result
  bool isMixed = false;
};

} // namespace occl::interchange
