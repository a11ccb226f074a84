// Parts of reports: places in plans, durations, and lists of bounded length.
#include "runtime/observe/report/wait_text.h"

#include "plan/io/printer.h"

#include <cstdio>
#include <utility>

namespace occl::insight {

const plan::Instruction *findInstruction(const plan::Plan &plan, const plan::Place &place) {
  if (place.rank >= plan.numRanks)
    return nullptr;
  auto blocks = plan.threadBlocksOf(plan.ranks[place.rank]);
  if (place.threadBlock >= blocks.size())
    return nullptr;
  auto instructions = plan.instructionsOf(blocks[place.threadBlock]);
  return place.instruction < instructions.size() ? &instructions[place.instruction] : nullptr;
}

std::string describePosition(const plan::Plan *plan, const plan::Place &place) {
  std::string text = "thread block " + std::to_string(place.threadBlock) + ", instruction " +
                     std::to_string(place.instruction);
  const plan::Instruction *instruction = plan ? findInstruction(*plan, place) : nullptr;
  if (!instruction)
    return text;
  text += std::string(" (") + plan::mnemonic(instruction->opcode) + ")";
  std::string source = plan::describeLocation(*plan, instruction->location);
  return source.empty() ? text : text + " at " + source;
}

std::string describeDuration(uint64_t nanoseconds) {
  char text[40];
  auto time = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000'000)
    std::snprintf(text, sizeof text, "%.0f us", time / 1e3);
  else if (nanoseconds < 1'000'000'000)
    std::snprintf(text, sizeof text, "%.1f ms", time / 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f s", time / 1e9);
  return text;
}

std::string listWaits(std::string heading, std::span<const std::string> waits, size_t mostBytes) {
  auto more = [&](size_t listed) {
    return listed == waits.size() ? std::string()
                                  : "\n  and " + std::to_string(waits.size() - listed) + " more";
  };
  // Keep the longest list that fits together with the number of the rest.
  std::string text = std::move(heading), listing = text + more(0);
  for (size_t i = 0; i < waits.size() && text.size() <= mostBytes; ++i) {
    text += "\n  " + waits[i];
    if (std::string rest = more(i + 1); text.size() + rest.size() <= mostBytes)
      listing = text + rest;
  }
  return listing;
}

std::string describeCycle(std::span<const std::string> waits, size_t mostBytes) {
  return listWaits("deadlock: preemption is off and the ranks wait for each other in a cycle:",
                   waits, mostBytes);
}

} // namespace occl::insight
