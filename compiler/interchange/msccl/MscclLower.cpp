#include "compiler/interchange/msccl/MscclLower.h"

#include "plan/model/builder.h"

#include <algorithm>

namespace occl::interchange::msccl {

using plan::Operand;
using plan::OperandKind;

namespace {

Range rangeOf(const Operand &operand) {
  return {operand.kind, static_cast<int32_t>(operand.index)};
}

class Lowering {
public:
  Lowering(const plan::Plan &plan, uint32_t rank, const plan::Instruction &instruction,
           const Pairs &pairs, uint32_t temporary, std::vector<Operation> &out)
      : plan(plan), rank(rank), count(instruction.count), pairs(pairs),
        temporary(plan::scratch(rank, temporary)), out(out) {
    // Sources and destinations sorted by what they are: messages received, messages sent, places in
    // memory. A multicast is as many sends.
    for (const Operand &source : plan.sourcesOf(instruction))
      if (source.kind == OperandKind::Connection)
        received.push_back(receivingEnd(plan, source.index, rank));
      else
        locals.push_back(source);
    for (const Operand &destination : plan.destinationsOf(instruction)) {
      if (destination.kind != OperandKind::Connection) {
        stored = destination;
        continue;
      }
      const plan::Connection &connection = plan.connections[destination.index];
      for (uint32_t i = 0; i < connection.numDestinations; ++i)
        sent.push_back(connection.firstDestination + i);
    }
  }

  void run() {
    if (received.size() == 1 && locals.size() <= 1 && sent.size() <= 1 &&
        (sent.empty() || pairs[received[0]] == sent[0]))
      return fuse();
    if (received.empty() && locals.size() == 1)
      return copyOrSend(locals[0]);
    accumulate();
  }

private:
  bool isSame(const Operand &a, const Operand &b) const {
    // In place, input and output are the same memory at an offset.
    if (a.kind == b.kind)
      return a.index == b.index;
    if (!plan.inPlace || a.kind == OperandKind::Scratch || b.kind == OperandKind::Scratch)
      return false;
    const Operand &input = a.kind == OperandKind::Input ? a : b;
    const Operand &output = a.kind == OperandKind::Input ? b : a;
    return int64_t{input.index} + plan.ranks[rank].inPlaceOffset == int64_t{output.index};
  }

  void add(StepType type, const Operand &source, const Operand &destination,
           uint32_t receives = kNoEnd, uint32_t sends = kNoEnd) {
    out.push_back({type, receives, sends, rangeOf(source), rangeOf(destination), count});
  }

  void fuse() {
    // One instruction of the plan is one step of the format, if it has one message in and at most
    // one out.
    uint32_t to = sent.empty() ? kNoEnd : sent[0];
    Operand target = stored.value_or(locals.empty() ? temporary : locals[0]);
    StepType type = StepType::Recv;
    if (locals.empty())
      type = sent.empty() ? StepType::Recv : StepType::RecvCopySend;
    else if (sent.empty())
      type = StepType::RecvReduceCopy;
    else
      type = stored ? StepType::RecvReduceCopySend : StepType::RecvReduceSend;
    add(type, locals.empty() ? target : locals[0], target, received[0], to);
  }

  void copyOrSend(const Operand &value) {
    if (stored)
      add(StepType::Copy, value, *stored);
    for (uint32_t end : sent)
      add(StepType::Send, value, value, kNoEnd, end);
  }

  /// Everything into one place, one after the other; from there on to others.
  void accumulate() {
    // The format's reductions have two operands: so one sum is built up step by step in the target.
    Operand target = stored.value_or(temporary);
    auto isTarget = [&](const Operand &local) { return isSame(local, target); };
    if (std::count_if(locals.begin(), locals.end(), isTarget) > 1)
      target = temporary; // storing the first sum there would destroy the other operand
    // A source that is the target goes first, as it is what the sum begins with.
    std::stable_partition(locals.begin(), locals.end(), isTarget);
    size_t firstLocal = 0, firstReceived = 0;
    // The first value: copied, received, or both reduced with a message.
    if (received.empty()) {
      const Operand &first = locals[firstLocal++];
      if (first.kind != target.kind || first.index != target.index)
        add(StepType::Copy, first, target);
    } else if (locals.empty()) {
      add(StepType::Recv, target, target, received[firstReceived++]);
    } else {
      add(StepType::RecvReduceCopy, locals[firstLocal++], target, received[firstReceived++]);
    }
    // All other messages, then all other local sources. (The order of additions may differ from the
    // plan's, so results of floats may.)
    for (; firstReceived < received.size(); ++firstReceived)
      add(StepType::RecvReduceCopy, target, target, received[firstReceived]);
    for (; firstLocal < locals.size(); ++firstLocal)
      add(StepType::Reduce, locals[firstLocal], target);
    // If it was built up elsewhere.
    if (stored && !isSame(target, *stored))
      add(StepType::Copy, target, *stored);
    for (uint32_t end : sent)
      add(StepType::Send, target, target, kNoEnd, end);
  }

  const plan::Plan &plan;
  uint32_t rank, count;
  const Pairs &pairs;
  Operand temporary;
  std::vector<Operation> &out;
  std::vector<uint32_t> received, sent; // ends
  std::vector<Operand> locals;
  std::optional<Operand> stored;
};

} // namespace

uint32_t receivingEnd(const plan::Plan &plan, uint32_t connection, uint32_t rank) {
  const plan::Connection &entry = plan.connections[connection];
  auto destinations = plan.destinationsOf(entry);
  auto found = std::find(destinations.begin(), destinations.end(), rank);
  return entry.firstDestination + static_cast<uint32_t>(found - destinations.begin());
}

void lowerInstruction(const plan::Plan &plan, uint32_t rank, const plan::Instruction &instruction,
                      const Pairs &pairs, uint32_t temporary, std::vector<Operation> &out) {
  Lowering(plan, rank, instruction, pairs, temporary, out).run();
}

} // namespace occl::interchange::msccl
