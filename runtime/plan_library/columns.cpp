// Plans as columns of numbers, in which regular plans repeat themselves for the packer.
#include "runtime/plan_library/columns.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace occl::plan_library {

namespace {

/// Fields of tables have up to 32 bits, and are written as differences from one row to the next, so
/// that regular columns repeat themselves.
class Writer {
public:
  template <class Number> void number(const Number &value) {
    const auto wide = static_cast<uint64_t>(value);
    append(&wide, sizeof wide);
  }
  void text(const std::string &value) {
    number(value.size());
    append(value.data(), value.size());
  }
  template <class Row, class... Fields>
  void table(const std::vector<Row> &rows, Fields Row::*...fields) {
    static_assert(((sizeof(Fields) <= sizeof(uint32_t)) && ...));
    number(rows.size());
    (column(rows, [&](const Row &row) { return row.*fields; }), ...);
  }
  void list(const std::vector<uint32_t> &numbers) {
    number(numbers.size());
    column(numbers, [](uint32_t each) { return each; });
  }
  /// Of rows that are no plain numbers.
  template <class Row, class Each> void rows(const std::vector<Row> &rows, Each each) {
    number(rows.size());
    for (const Row &row : rows)
      each(row);
  }

  std::string bytes;

private:
  template <class Row, class Field> void column(const std::vector<Row> &rows, Field fieldOf) {
    uint32_t last = 0;
    for (const Row &row : rows) {
      const auto value = static_cast<uint32_t>(fieldOf(row));
      const uint32_t difference = value - last;
      append(&difference, sizeof difference);
      last = value;
    }
  }
  void append(const void *from, size_t size) {
    bytes.append(static_cast<const char *>(from), size);
  }
};

/// As Writer. What there are too few bytes for is 0, or empty.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}

  template <class Number> void number(Number &value) {
    value = static_cast<Number>(take<uint64_t>());
  }
  void text(std::string &value) {
    const auto size = take<uint64_t>();
    if (size > rest.size())
      return fail();
    value = rest.substr(0, size);
    rest.remove_prefix(size);
  }
  template <class Row, class... Fields> void table(std::vector<Row> &rows, Fields Row::*...fields) {
    if (!resize(rows, sizeof(uint32_t) * sizeof...(Fields)))
      return;
    (column(rows, [&](Row &row, uint32_t value) { row.*fields = static_cast<Fields>(value); }),
     ...);
  }
  void list(std::vector<uint32_t> &numbers) {
    if (resize(numbers, sizeof(uint32_t)))
      column(numbers, [](uint32_t &each, uint32_t value) { each = value; });
  }
  template <class Row, class Each> void rows(std::vector<Row> &rows, Each each) {
    if (resize(rows, 1))
      for (Row &row : rows)
        each(row);
  }
  bool isAtItsEnd() const { return isSound && rest.empty(); }

private:
  template <class Row> bool resize(std::vector<Row> &rows, size_t leastBytesEach) {
    const auto number = take<uint64_t>();
    // A damaged length must not make room for rows that cannot be there.
    const bool isThere = number <= rest.size() / leastBytesEach;
    if (isThere)
      rows.resize(number);
    else
      fail();
    return isThere;
  }
  template <class Row, class Set> void column(std::vector<Row> &rows, Set set) {
    uint32_t value = 0;
    // resize() has seen that the bytes of all columns are there.
    const char *from = rest.data();
    for (Row &row : rows) {
      uint32_t difference = 0;
      std::memcpy(&difference, from, sizeof difference);
      from += sizeof difference;
      set(row, value += difference);
    }
    rest.remove_prefix(rows.size() * sizeof value);
  }
  template <class Number> Number take() {
    Number value = 0;
    if (rest.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  void fail() {
    isSound = false;
    rest = {};
  }

  std::string_view rest;
  bool isSound = true;
};

template <class Io, class Plan> void transferHeader(Io &io, Plan &plan) {
  io.text(plan.name);
  io.text(plan.collective);
  io.text(plan.sourceHash);
  // Each parameter is a name and a number.
  io.rows(plan.parameters, [&](auto &parameter) {
    io.text(parameter.first);
    io.number(parameter.second);
  });
  // Fixed fields are written in full width, whatever their type.
  io.number(plan.schemaVersion);
  io.number(plan.numRanks);
  io.number(plan.partChunks);
  io.number(plan.root);
  io.number(plan.outOfPlace);
  io.number(plan.inPlace);
  io.number(plan.uniformChunks);
  io.number(plan.hasPostcondition);
  io.number(plan.average);
  io.number(plan.protocol);
  io.number(plan.depth);
  io.number(plan.minBytes);
  io.number(plan.maxBytes);
}

/// Both ways, so that neither forgets a field of the other.
template <class Io, class Plan> void transfer(Io &io, Plan &plan) {
  using namespace plan;
  transferHeader(io, plan);
  // Each table in one go, field by field.
  io.table(plan.ranks, &RankPlan::inputChunks, &RankPlan::outputChunks, &RankPlan::scratchChunks,
           &RankPlan::inPlaceOffset, &RankPlan::firstThreadBlock, &RankPlan::numThreadBlocks);
  io.table(plan.threadBlocks, &ThreadBlock::firstInstruction, &ThreadBlock::numInstructions);
  io.table(plan.instructions, &Instruction::opcode, &Instruction::final, &Instruction::numSources,
           &Instruction::numDestinations, &Instruction::numDependencies, &Instruction::count,
           &Instruction::extent, &Instruction::firstOperand, &Instruction::firstDependency,
           &Instruction::value, &Instruction::location);
  io.table(plan.operands, &Operand::kind, &Operand::rank, &Operand::index);
  io.table(plan.dependencies, &Dependency::threadBlock, &Dependency::instruction);
  io.table(plan.connections, &Connection::source, &Connection::channel,
           &Connection::firstDestination, &Connection::numDestinations, &Connection::isOrdered,
           &Connection::isCounter);
  io.list(plan.destinations);
  io.table(plan.requirements, &Requirement::rank, &Requirement::outputChunk, &Requirement::count,
           &Requirement::firstContribution, &Requirement::numContributions);
  io.table(plan.contributions, &Contribution::rank, &Contribution::chunk);
  // Source positions come last: files by name, then lines and columns.
  io.rows(plan.files, [&](auto &file) { io.text(file); });
  io.table(plan.locations, &Location::file, &Location::line, &Location::column);
}

} // namespace

std::string toColumns(const plan::Plan &plan) {
  Writer writer;
  transfer(writer, plan);
  return std::move(writer.bytes);
}

std::optional<plan::Plan> fromColumns(std::string_view bytes) {
  Reader reader(bytes);
  plan::Plan plan;
  transfer(reader, plan);
  if (!reader.isAtItsEnd())
    return {};
  return plan;
}

} // namespace occl::plan_library
