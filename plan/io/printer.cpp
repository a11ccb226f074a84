#include "plan/io/printer.h"

#include "plan/model/names.h"
#include "support/text/wrapped.h"

#include <algorithm>
#include <ostream>
#include <sstream>

namespace occl::plan {

namespace {

/// Lists longer than this are cut in the middle.
constexpr size_t kMaxListed = 8;

std::string rangeText(std::string_view buffer, uint32_t first, uint32_t count) {
  std::string text = std::string(buffer) + "[" + std::to_string(first);
  return text + (count == 1 ? "]" : ".." + std::to_string(uint64_t{first} + count) + "]");
}

/// "rank 3" or "ranks 1, 2 and 3".
std::string ranksText(std::span<const uint32_t> ranks) {
  if (ranks.size() == 1)
    return "rank " + std::to_string(ranks[0]);
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    // The middle of long lists is left out, but for one that would take no less space than the
    // dots.
    if (i == kMaxListed && ranks.size() > kMaxListed + 1) {
      i = ranks.size() - 1;
      text += ", ...";
    }
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::string channelText(const Connection &connection) {
  return connection.isCounter ? "" : " (channel " + std::to_string(connection.channel) + ")";
}

std::string operandText(const Plan &plan, const Operand &operand, uint32_t count, bool isSource,
                        bool namesRank) {
  if (operand.kind != OperandKind::Connection)
    return rangeText(nameOf(operand.kind), operand.index, count) +
           (namesRank ? " of rank " + std::to_string(operand.rank) : "");
  const Connection &connection = plan.connections[operand.index];
  std::string peers = isSource ? "rank " + std::to_string(connection.source)
                               : ranksText(plan.destinationsOf(connection));
  return peers + channelText(connection);
}

std::string operandsText(const Plan &plan, std::span<const Operand> operands, uint32_t count,
                         bool isSource, bool namesRank) {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i) {
    // As in ranksText: first ones, dots, the last one.
    if (i == kMaxListed && operands.size() > kMaxListed + 1) {
      i = operands.size() - 1;
      text += isSource ? " + ..." : ", ...";
    }
    text += (i == 0     ? ""
             : isSource ? " + "
                        : ", ") +
            operandText(plan, operands[i], count, isSource, namesRank);
  }
  return text;
}

void printHead(const Plan &plan, std::ostream &terminal) {
  std::ostringstream out;
  out << "plan " << plan.name << ": " << plan.collective << " for " << plan.numRanks << " ranks, "
      << plan.partChunks << " chunks a part, protocol " << nameOf(plan.protocol) << ", depth "
      << plan.depth << "\n";
  out << "valid " << (plan.outOfPlace ? "out of place" : "")
      << (plan.outOfPlace && plan.inPlace ? " and " : "") << (plan.inPlace ? "in place" : "");
  if (plan.uniformChunks)
    out << ", for counts that " << plan.partChunks << " divides";
  if (!plan.average)
    out << ", not for averages";
  out << "; source hash " << plan.sourceHash << "\n";
  for (const auto &[name, value] : plan.parameters)
    out << "  " << name << " = " << value << "\n";
  terminal << wrapped(out.str(), 2);
}

/// Behind the number of an instruction, and what of it does not fit its line.
constexpr size_t kIndent = 7, kFurtherIndent = 9;

void printInstruction(const Plan &plan, std::ostream &out, uint32_t index, uint32_t position,
                      const PlanNotes *notes) {
  const Instruction &instruction = plan.instructions[index];
  std::string text = "    " + std::to_string(position) + ": " + describeAction(plan, instruction);
  for (const Dependency &dependency : plan.dependenciesOf(instruction))
    text += ", after " + std::to_string(dependency.threadBlock) + ":" +
            std::to_string(dependency.instruction);
  const std::string where = describeLocation(plan, instruction.location);
  const std::string when = notes ? notes->ofInstruction(index) : "";
  const std::string waits = notes ? notes->ofWaits(index) : "";
  const std::string place = where.empty() ? "" : "at " + where;
  for (const std::string &below :
       {place + (place.empty() || when.empty() ? "" : ", ") + when, waits})
    if (!below.empty())
      text += "\n" + std::string(kIndent, ' ') + below;
  out << wrapped(text, kFurtherIndent) << "\n";
}

void printBlock(const Plan &plan, std::ostream &out, const RankPlan &rank, uint32_t number,
                const PlanNotes *notes) {
  const ThreadBlock &block = plan.threadBlocks[rank.firstThreadBlock + number];
  // The notes, if any, stand behind what they are about: on the line of the thread block here, on a
  // line of their own below each instruction.
  std::string head = "  thread block " + std::to_string(number) + ":";
  if (notes)
    head += " " + notes->ofBlock(rank.firstThreadBlock + number);
  out << wrapped(head, 4) << "\n";
  for (uint32_t position = 0; position < block.numInstructions; ++position)
    printInstruction(plan, out, block.firstInstruction + position, position, notes);
}

void printRank(const Plan &plan, std::ostream &out, uint32_t rank, const PrintOptions &options) {
  const RankPlan &rankPlan = plan.ranks[rank];
  out << "rank " << rank << ": input " << rankPlan.inputChunks << ", output "
      << rankPlan.outputChunks << ", scratch " << rankPlan.scratchChunks << " chunks\n";
  for (uint32_t number = 0; number < rankPlan.numThreadBlocks; ++number)
    if (number == options.threadBlock.value_or(number))
      printBlock(plan, out, rankPlan, number, options.notes);
}

} // namespace

Place placeOf(const Plan &plan, uint32_t index) {
  // The last thread block that starts at or before the instruction: empty ones start there too, but
  // earlier in order.
  auto block = std::upper_bound(
      plan.threadBlocks.begin(), plan.threadBlocks.end(), index,
      [](uint32_t i, const ThreadBlock &block) { return i < block.firstInstruction; });
  auto blockIndex = static_cast<uint32_t>(block - plan.threadBlocks.begin() - 1);
  auto rank =
      std::upper_bound(plan.ranks.begin(), plan.ranks.end(), blockIndex,
                       [](uint32_t b, const RankPlan &rank) { return b < rank.firstThreadBlock; });
  auto rankIndex = static_cast<uint32_t>(rank - plan.ranks.begin() - 1);
  return {rankIndex, blockIndex - plan.ranks[rankIndex].firstThreadBlock,
          index - plan.threadBlocks[blockIndex].firstInstruction};
}

std::string describePlace(const Place &place) {
  return "rank " + std::to_string(place.rank) + ", thread block " +
         std::to_string(place.threadBlock) + ", instruction " + std::to_string(place.instruction);
}

std::string describeLocation(const Plan &plan, uint32_t location) {
  if (location >= plan.locations.size() || plan.locations[location].file >= plan.files.size())
    return "";
  const Location &where = plan.locations[location];
  return plan.files[where.file] + ":" + std::to_string(where.line) + ":" +
         std::to_string(where.column);
}

std::string describeAction(const Plan &plan, const Instruction &instruction) {
  std::string name = mnemonic(instruction.opcode);
  // Only a loadReduceStore has operands in several ranks' buffers; naming the rank elsewhere would
  // repeat the head of the section in each line.
  bool namesRank = instruction.opcode == Opcode::LoadReduceStore;
  auto text = [&](std::span<const Operand> operands, bool isSource) {
    return operandsText(plan, operands, instruction.count, isSource, namesRank);
  };
  std::string sources = text(plan.sourcesOf(instruction), true);
  std::string destinations = text(plan.destinationsOf(instruction), false);
  // Control instructions move nothing, so that "sources -> destinations" would say nothing: a
  // signal has only a receiver, a wait only what it counts.
  if (instruction.opcode == Opcode::Signal)
    return name + " to " + destinations;
  if (instruction.opcode == Opcode::Wait)
    return name + " for signal " + std::to_string(instruction.value) + " of " + sources;
  name += " " + sources + " -> " + destinations;
  return instruction.final ? name + ", final" : name;
}

std::string describe(const Plan &plan, const Place &place) {
  const RankPlan &rank = plan.ranks[place.rank];
  const ThreadBlock &block = plan.threadBlocks[rank.firstThreadBlock + place.threadBlock];
  const Instruction &instruction = plan.instructions[block.firstInstruction + place.instruction];
  std::string where = describeLocation(plan, instruction.location);
  return describePlace(place) + ": " + describeAction(plan, instruction) +
         (where.empty() ? "" : ", at " + where);
}

std::string describe(const Plan &plan, uint32_t instruction) {
  return describe(plan, placeOf(plan, instruction));
}

std::string describeConnection(const Plan &plan, const Connection &connection) {
  std::string ends = "rank " + std::to_string(connection.source) + " to " +
                     ranksText(plan.destinationsOf(connection));
  return ends +
         (connection.isCounter ? ", counter" : ", channel " + std::to_string(connection.channel));
}

void printPlan(const Plan &plan, std::ostream &out, const PrintOptions &options) {
  printHead(plan, out);
  for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
    if (rank == options.rank.value_or(rank))
      printRank(plan, out, rank, options);
}

} // namespace occl::plan
