#include "compiler/export/DotExport.h"

#include "plan/io/printer.h"

#include <ostream>
#include <vector>

namespace occl::exporter {

namespace {

/// `text` as a Graphviz string.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

class DotWriter {
public:
  DotWriter(const plan::Plan &plan, std::ostream &out)
      : plan(plan), out(out), senders(plan.connections.size()), receivers(plan.connections.size()) {
  }

  void run() {
    out << "digraph " << quoted(plan.name) << " {\n  node [shape=box];\n";
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      writeRank(r);
    writeMessages();
    out << "}\n";
  }

private:
  void writeRank(uint32_t r) {
    const plan::RankPlan &rank = plan.ranks[r];
    out << "  subgraph cluster_" << r << " {\n    label=\"rank " << r << "\";\n";
    for (uint32_t b = 0; b < rank.numThreadBlocks; ++b)
      writeBlock(rank, r, b);
    out << "  }\n";
  }

  void writeBlock(const plan::RankPlan &rank, uint32_t r, uint32_t b) {
    // A cluster for each thread block, so that its instructions stand in a column; arrows within it
    // are program order, dashed ones dependencies.
    const plan::ThreadBlock &block = plan.threadBlocks[rank.firstThreadBlock + b];
    out << "    subgraph cluster_" << r << '_' << b << " {\n      label=\"thread block " << b
        << "\";\n";
    for (uint32_t i = 0; i < block.numInstructions; ++i) {
      uint32_t index = block.firstInstruction + i;
      const plan::Instruction &instruction = plan.instructions[index];
      out << "      i" << index << " [label=" << quoted(plan::describeAction(plan, instruction))
          << "];\n";
      if (i > 0)
        out << "      i" << index - 1 << " -> i" << index << ";\n";
      for (const plan::Dependency &dependency : plan.dependenciesOf(instruction))
        out << "      i"
            << plan.threadBlocks[rank.firstThreadBlock + dependency.threadBlock].firstInstruction +
                   dependency.instruction
            << " -> i" << index << " [style=dashed];\n";
      // Messages are drawn at the end, when all receivers have a node.
      noteMessages(instruction, index);
    }
    out << "    }\n";
  }

  void noteMessages(const plan::Instruction &instruction, uint32_t index) {
    for (const plan::Operand &operand : plan.sourcesOf(instruction))
      if (operand.kind == plan::OperandKind::Connection)
        receivers[operand.index].push_back(index);
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if (operand.kind == plan::OperandKind::Connection)
        senders[operand.index].push_back(index);
  }

  /// Receivers are in the order of ranks, and on a rank in the order of messages.
  void writeMessages() {
    for (size_t c = 0; c < senders.size(); ++c)
      for (size_t i = 0; i < receivers[c].size(); ++i)
        out << "  i" << senders[c][i % senders[c].size()] << " -> i" << receivers[c][i]
            << " [style=bold];\n";
  }

  const plan::Plan &plan;
  std::ostream &out;
  std::vector<std::vector<uint32_t>> senders, receivers; // instructions, of each connection
};

} // namespace

void writeDot(const plan::Plan &plan, std::ostream &out) { DotWriter(plan, out).run(); }

} // namespace occl::exporter
