#include "compiler/passes/direct/DirectMessages.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;

bool isPlainSend(const Instruction &instruction) {
  return instruction.sources.size() == 1 && instruction.sources[0].isLocal() &&
         !instruction.localDestination();
}

bool isPlainReceive(const Instruction &instruction) {
  return instruction.sources.size() == 1 && !instruction.sources[0].isLocal() &&
         instruction.destinations.size() == 1 && instruction.localDestination();
}

const Place *valueOf(const Instruction &sender) {
  return isPlainSend(sender) ? &sender.sources[0] : sender.localDestination();
}

DirectMessages::DirectMessages(const Program &program, const DirectOptions &options,
                               llvm::ArrayRef<Reason> reasons)
    : program(program), options(options) {
  // Steps numbered through; messages connection by connection.
  for (const Rank &rank : program.ranks)
    firstStep.push_back(firstStep.back() + static_cast<uint32_t>(rank.steps.size()));
  collect();
  // Why messages of a connection may have to stay, if they do: known from an earlier round.
  for (size_t c = 0; c < reasons.size(); ++c)
    for (uint32_t m = firstMessage[c]; m < firstMessage[c + 1]; ++m)
      messages[m].reason = reasons[c];
}

/// Numbers the messages of all connections, and lists those of each step.
void DirectMessages::collect() {
  // Counted first, so that a connection's messages lie side by side.
  std::vector<uint32_t> &first = firstMessage;
  first.assign(program.connections.size() + 1, 0);
  forEachStep([&](StepRef ref) {
    forEachMessage(at(ref).destinations, [&](const Place &place) { ++first[place.index + 1]; });
  });
  for (size_t c = 0; c < program.connections.size(); ++c)
    first[c + 1] += first[c];
  messages.resize(first.back());
  messagesOf.resize(numSteps());
  // The m-th send and the m-th receive of each rank are the same message.
  std::vector<uint32_t> sent(program.connections.size(), 0);
  std::vector<std::vector<uint32_t>> received(program.connections.size(),
                                              std::vector<uint32_t>(program.ranks.size(), 0));
  // Sources before destinations, which is the order that users of `of()` rely on.
  forEachStep([&](StepRef ref) {
    auto note = [&](const Place &place, uint32_t number) {
      messagesOf[flat(ref)].push_back(first[place.index] + number);
      return &messages[first[place.index] + number];
    };
    forEachMessage(at(ref).sources, [&](const Place &place) {
      note(place, received[place.index][ref.rank]++)->receivers.push_back(ref);
    });
    forEachMessage(at(ref).destinations,
                   [&](const Place &place) { note(place, sent[place.index]++)->sender = ref; });
  });
}

llvm::SmallVector<Way, 4> DirectMessages::waysOf(StepRef ref) const {
  llvm::SmallVector<Way, 4> ways;
  for (uint32_t message : of(ref))
    ways.push_back(messages[message].way);
  return ways;
}

bool DirectMessages::isOfOneGroup(const Message &message) const {
  return llvm::all_of(message.receivers, [&](StepRef receiver) {
    return options.groups[receiver.rank] == options.groups[message.sender.rank];
  });
}

bool DirectMessages::canStore(const Message &message) const {
  return isOfOneGroup(message) &&
         llvm::all_of(message.receivers, [&](StepRef ref) { return isPlainReceive(at(ref)); });
}

bool DirectMessages::canLoad(const Message &message) const {
  return isOfOneGroup(message) && valueOf(at(message.sender));
}

void DirectMessages::begin() {
  for (Message &message : messages)
    message.way = canStore(message) ? Way::Store : canLoad(message) ? Way::Load : Way::Connection;
}

void DirectMessages::demote(uint32_t index, Reason reason) {
  Message &message = messages[index];
  if (message.way == Way::Connection)
    return;
  message.reason = reason;
  message.way = message.way == Way::Store && canLoad(message) ? Way::Load : Way::Connection;
  ++numTakenBack;
}

bool DirectMessages::hasDirect() const {
  return llvm::any_of(messages, [](const Message &m) { return m.way != Way::Connection; });
}

std::vector<bool> DirectMessages::usedConnections() const {
  // A connection is needed if any of its messages still goes over it.
  std::vector<bool> isUsed(program.connections.size(), false);
  forEachStep([&](StepRef ref) {
    auto ways = waysOf(ref);
    size_t message = 0;
    for (const inst::Places *places : {&at(ref).sources, &at(ref).destinations})
      forEachMessage(*places, [&](const Place &place) {
        if (ways[message++] == Way::Connection)
          isUsed[place.index] = true;
      });
  });
  return isUsed;
}

Reason DirectMessages::reasonOf(size_t connection) const {
  uint32_t message = firstMessage[connection];
  while (message + 1 < firstMessage[connection + 1] && messages[message].way != Way::Connection)
    ++message;
  return messages[message].reason;
}

KeptMessages DirectMessages::kept() const {
  // Messages that could have become accesses, as they end in the sender's group, and did not.
  KeptMessages kept;
  for (const Message &message : messages) {
    uint32_t group = options.groups[message.sender.rank];
    if (llvm::none_of(message.receivers,
                      [&](StepRef ref) { return options.groups[ref.rank] == group; }))
      continue;
    ++kept.all;
    if (message.way != Way::Connection)
      continue;
    ++(kept.*message.reason);
    // The first one is where to look.
    if (!kept.location)
      kept.location = program.ranks[message.sender.rank].steps[message.sender.step].location;
  }
  return kept;
}

} // namespace occl::passes
