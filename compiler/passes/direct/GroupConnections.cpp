#include "compiler/passes/direct/GroupConnections.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

std::vector<uint32_t> splitByGroups(Program &program, llvm::ArrayRef<uint32_t> groups,
                                    const std::vector<bool> &staysWhole) {
  constexpr uint32_t kNone = ~0u;
  // For each connection with receivers on both sides, a second one for the near ones.
  std::vector<uint32_t> partOf, newOf(program.connections.size(), kNone);
  for (uint32_t c = 0; c < newOf.size(); ++c) {
    inst::Connection near = program.connections[c];
    inst::Connection &far = program.connections[c]; // until the next one is appended
    auto isFar = [&](uint32_t rank) { return groups[rank] != groups[far.source]; };
    llvm::erase_if(near.destinations, isFar);
    if (staysWhole[c] || near.destinations.empty() ||
        near.destinations.size() == far.destinations.size())
      continue;
    llvm::erase_if(far.destinations, [&](uint32_t rank) { return !isFar(rank); });
    newOf[c] = static_cast<uint32_t>(program.connections.size());
    partOf.push_back(c);
    program.connections.push_back(std::move(near));
  }
  // Receivers and senders now name the parts: a near receiver the new one, the sender both.
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (Step &step : program.ranks[r].steps) {
      Instruction &instruction = step.instruction;
      forEachMessage(instruction.sources, [&](Place &place) {
        bool isNear = groups[r] == groups[program.connections[place.index].source];
        if (newOf[place.index] != kNone && isNear)
          place.index = newOf[place.index];
      });
      inst::Places more;
      forEachMessage(instruction.destinations, [&](const Place &place) {
        if (newOf[place.index] != kNone)
          more.push_back({PlaceKind::Connection, -1, newOf[place.index]});
      });
      instruction.destinations.append(more);
    }
  return partOf;
}

void dropConnections(Program &program, const std::vector<bool> &isUsed) {
  // Connections are numbered anew, without gaps.
  std::vector<uint32_t> newIndex(isUsed.size());
  std::vector<inst::Connection> kept;
  for (size_t c = 0; c < isUsed.size(); ++c) {
    newIndex[c] = static_cast<uint32_t>(kept.size());
    if (isUsed[c])
      kept.push_back(program.connections[c]);
  }
  program.connections = std::move(kept);
  for (Rank &rank : program.ranks)
    for (Step &step : rank.steps)
      for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
        forEachMessage(*places, [&](Place &place) { place.index = newIndex[place.index]; });
}

} // namespace occl::passes
