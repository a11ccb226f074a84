#include "plan/verify/checks/symbolic.h"

#include "plan/model/names.h"

#include <algorithm>
#include <new>
#include <random>

namespace occl::plan::verify {

namespace {

Value *allocate(size_t size) {
  auto *values = static_cast<Value *>(std::calloc(std::max<size_t>(size, 1), sizeof(Value)));
  if (!values)
    throw std::bad_alloc();
  return values;
}

} // namespace

Keys::Keys() {
  std::random_device random;
  for (uint64_t &secret : secrets)
    secret = uint64_t{random()} << 32 | random();
}

Symbolic::Symbolic(const Network &network, AliasMode mode, const Keys &keys)
    : plan(network.plan), network(network), mode(mode), keys(keys), where(plan, mode),
      memory(allocate(where.size())), firstValue(network.sends.size() + 1),
      firstResult(plan.instructions.size() + 1) {
  // Prefix sums: each instruction makes one result a chunk, each message carries one value a chunk,
  // and both are found by number without a search.
  for (size_t i = 0; i < plan.instructions.size(); ++i)
    firstResult[i + 1] = firstResult[i] + plan.instructions[i].count;
  for (size_t i = 0; i < network.sends.size(); ++i)
    firstValue[i + 1] = firstValue[i] + plan.instructions[network.sends[i]].count;
  messages.reset(allocate(firstValue.back()));
}

Finding Symbolic::run(const std::vector<uint32_t> &order, std::vector<Step> *steps) {
  for (uint32_t index : order)
    if (Finding finding = execute(index, steps))
      return finding;
  return {};
}

Value Symbolic::valueAt(uint32_t rank, uint32_t location) const {
  const Value &value = memory[location];
  // Memory comes from calloc, so what was never written costs nothing: what it holds at entry is
  // computed when it is asked for.
  if (value.isWritten)
    return value;
  uint32_t chunk = where.initialInput(rank, location);
  if (chunk == kNone)
    return {};
  Value initial = keys.of({rank, chunk});
  initial.extent = chunk % plan.partChunks;
  return initial;
}

uint32_t Symbolic::instructionOf(uint32_t result) const {
  auto next = std::upper_bound(firstResult.begin(), firstResult.end(), result);
  return static_cast<uint32_t>(next - firstResult.begin() - 1);
}

Finding Symbolic::execute(uint32_t index, std::vector<Step> *steps) {
  const Instruction &instruction = plan.instructions[index];
  // Before anything is executed, as an error must leave no trace of the instruction.
  for (const Operand &destination : plan.destinationsOf(instruction))
    if (Finding finding = checkDestination(index, destination))
      return finding;
  for (uint32_t chunk = 0; chunk < instruction.count; ++chunk) {
    // All sources of a chunk are read before any of its destinations is written; chunk by chunk,
    // since that is what slices do, and destinations may be the sources' own ranges.
    Value result = {};
    if (Finding finding = reduce(index, chunk, steps, result))
      return finding;
    uint32_t operand = instruction.firstOperand + instruction.numSources;
    for (uint32_t i = 0; i < instruction.numDestinations; ++i, ++operand) {
      const Operand &destination = plan.operands[operand];
      if (destination.kind == OperandKind::Connection) {
        // Values of messages lie by connection and ordinal: what was sent stays there, so a receive
        // finds it however much later it comes.
        uint32_t message = network.firstSend[destination.index] + network.ordinal[operand];
        messages[firstValue[message] + chunk] = result;
      } else {
        memory[where.of(destination.rank, destination.kind, destination.index + chunk)] = result;
      }
    }
  }
  return {};
}

/// The sum of the sources' chunk `chunk`.
Finding Symbolic::reduce(uint32_t index, uint32_t chunk, std::vector<Step> *steps, Value &result) {
  const Instruction &instruction = plan.instructions[index];
  // In order, as the reduction does it; for sums of keys that makes no difference, for what is
  // reported it does.
  for (uint32_t i = 0; i < instruction.numSources; ++i) {
    uint32_t operand = instruction.firstOperand + i;
    const Operand &source = plan.operands[operand];
    Value value;
    uint32_t entry = 0;
    // A received value comes with what its sender knew; one in memory may still be the input's,
    // which has no result number: its location stands for it.
    if (source.kind == OperandKind::Connection) {
      uint32_t message = network.firstSend[source.index] + network.ordinal[operand];
      value = messages[firstValue[message] + chunk];
    } else {
      uint32_t location = where.of(source.rank, source.kind, source.index + chunk);
      value = valueAt(source.rank, location);
      entry = kEntry | location;
    }
    if (Finding finding = checkSource(index, chunk, source, value))
      return finding;
    // Only when a mistake is being explained: it is a record of every source of every result.
    if (steps)
      steps->push_back({firstResult[index] + chunk, value.isWritten ? value.origin - 1 : entry});
    // What passed a final reduction is final, and so is everything made of it.
    result.isFinal |= value.isFinal;
    accumulate(result, value);
  }
  result.isFinal |= instruction.final;
  result.extent = extentOf(instruction, chunk);
  // 0 is kept for "as at entry", so numbers begin at 1.
  result.origin = firstResult[index] + chunk + 1;
  result.isWritten = 1;
  return {};
}

Finding Symbolic::checkSource(uint32_t index, uint32_t chunk, const Operand &source,
                              const Value &value) {
  const Instruction &instruction = plan.instructions[index];
  auto name = [&] {
    return source.kind == OperandKind::Connection ? "what it receives"
                                                  : std::string(nameOf(source.kind)) + " chunk " +
                                                        std::to_string(source.index + chunk);
  };
  // Every defined value has a contribution at least, so none means that nobody wrote and that it is
  // no input.
  if (value.numContributions == 0)
    return error(index, Code::UndefinedRead, "it reads " + name() + ", which was never written");
  // Twice final would divide an average twice.
  if (value.isFinal && instruction.numSources > 1)
    return error(index, Code::ReducedAgain,
                 "it reduces " + name() + ", which a reduction marked final has completed");
  // The receiver of a message has the same extent as its sender (proof 2); here it is data in
  // memory that comes back with another size.
  if (!plan.uniformChunks && value.extent != extentOf(instruction, chunk))
    return error(index, Code::ExtentChanged,
                 name() + " holds a chunk of extent " + std::to_string(value.extent) +
                     ", the instruction moves extent " +
                     std::to_string(extentOf(instruction, chunk)) +
                     ": only a plan for uniform chunks may mix them");
  return {};
}

Finding Symbolic::checkDestination(uint32_t index, const Operand &destination) {
  if (destination.kind != OperandKind::Input || mode == AliasMode::InPlace)
    return {};
  return error(index, Code::InputWritten,
               "it writes to the input, which must keep its value out of place: write to "
               "output or scratch, or claim in place only");
}

VerifyError Symbolic::error(uint32_t index, Code code, std::string message) const {
  VerifyError error = errorAt(plan, index, code, std::move(message));
  error.mode = mode;
  error.witness = {noteAt(plan, index)};
  return error;
}

} // namespace occl::plan::verify
