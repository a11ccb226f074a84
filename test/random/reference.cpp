#include "test/random/reference.h"

#include <algorithm>

namespace occl::random {

Memory::Memory(const Shape &shape, bool inPlace) : shape(shape), inPlace(inPlace) {
  for (int buffer = 0; buffer < 3; ++buffer)
    cells[buffer].resize(size_t{shape.ranks} * shape.sizes[buffer]);
}

Place Memory::address(Place place) const {
  if (inPlace && place.buffer == Buffer::Input)
    return {Buffer::Output, place.rank, place.index + shape.offset};
  return place;
}

std::optional<Value> &Memory::operator[](Place place) {
  Place real = address(place);
  int buffer = static_cast<int>(real.buffer);
  return cells[buffer][size_t{real.rank} * shape.sizes[buffer] + real.index];
}

static std::string textOf(Place place, uint32_t count) {
  constexpr const char *kNames[] = {"input", "output", "s"};
  std::string text = std::string(kNames[static_cast<int>(place.buffer)]) + "[" +
                     std::to_string(place.rank) + "][" + std::to_string(place.index);
  return text + (count == 1 ? "]" : " .. " + std::to_string(place.index + count) + "]");
}

Reference::Reference(const Shape &shape, Expressions &expressions)
    : form(shape), expressions(expressions) {
  memories.reserve(2);
  if (form.outOfPlace)
    memories.emplace_back(form, false);
  if (form.inPlace)
    memories.emplace_back(form, true);
  uint32_t chunks = form.sizes[0];
  for (Memory &memory : memories)
    for (uint32_t rank = 0; rank < form.ranks; ++rank)
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        Value value{expressions.input(rank, chunk), {}, chunk % form.partChunks};
        value.contributions.set(rank * chunks + chunk);
        memory[{Buffer::Input, rank, chunk}] = value;
      }
}

std::optional<Value> Reference::at(Place place) {
  if (form.inPlace && place.buffer == Buffer::Input &&
      overwritten.contains({place.rank, place.index + form.offset}))
    return std::nullopt;
  std::optional<Value> value = memories[0][place];
  return memories.size() == 1 || value == memories[1][place] ? value : std::nullopt;
}

std::optional<Reference::Values> Reference::read(Place place, uint32_t count) {
  if (place.index + count > form.sizes[static_cast<int>(place.buffer)])
    return std::nullopt;
  Values values;
  for (uint32_t i = 0; i < count; ++i) {
    std::optional<Value> value = at(place.at(i));
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

/// In range; the target disjoint from each source or equal to it; out of place, the input is not
/// written.
bool Reference::isAllowed(std::span<const Place> sources, Place target, uint32_t count) const {
  if ((form.outOfPlace && target.buffer == Buffer::Input) ||
      target.index + count > form.sizes[static_cast<int>(target.buffer)])
    return false;
  for (const Memory &memory : memories)
    for (Place source : sources) {
      Place a = memory.address(source), b = memory.address(target);
      uint32_t distance = a.index < b.index ? b.index - a.index : a.index - b.index;
      if (a.buffer == b.buffer && a.rank == b.rank && distance > 0 && distance < count)
        return false;
    }
  return true;
}

bool Reference::admitsExtents(std::span<const Values> operands, Place target) {
  bool isMixed = false;
  for (uint32_t i = 0; i < operands[0].size(); ++i) {
    uint32_t extent = operands[0][i].extent;
    for (const Values &values : operands)
      isMixed |= values[i].extent != extent;
    isMixed |= target.buffer != Buffer::Scratch && target.at(i).index % form.partChunks != extent;
  }
  uniform |= isMixed && !form.keepsExtents;
  return !isMixed || !form.keepsExtents;
}

void Reference::write(Place target, const Values &values) {
  for (uint32_t i = 0; i < values.size(); ++i) {
    for (Memory &memory : memories)
      memory[target.at(i)] = values[i];
    Place real = memories.back().address(target.at(i));
    if (target.buffer == Buffer::Output)
      overwritten.insert({real.rank, real.index});
    else if (real.buffer == Buffer::Output)
      overwritten.erase({real.rank, real.index});
  }
}

bool Reference::copy(Place source, Place target, uint32_t count) {
  std::optional<Values> values = read(source, count);
  if (!values || !isAllowed({&source, 1}, target, count) || !admitsExtents({&*values, 1}, target))
    return false;
  body += indent + textOf(source, count) + ".copy(" + textOf(target, count) + ");\n";
  write(target, *values);
  ++statements;
  return true;
}

/// The reduction of one chunk of each operand; nothing if a contribution would be in it twice.
std::optional<Value> Reference::reduce(std::span<const Values> operands, uint32_t chunk) {
  Value result = operands[0][chunk];
  for (const Values &values : operands.subspan(1)) {
    const Value &value = values[chunk];
    if ((result.contributions & value.contributions).any())
      return std::nullopt;
    result.expression = expressions.sum(result.expression, value.expression);
    result.contributions |= value.contributions;
  }
  result.reduction = statements;
  return result;
}

bool Reference::reduce(std::span<const Place> sources, Place target, uint32_t count) {
  std::vector<Values> operands;
  for (Place source : sources) {
    std::optional<Values> values = read(source, count);
    if (!values)
      return false;
    operands.push_back(std::move(*values));
  }
  if (operands.size() < 2 || !isAllowed(sources, target, count))
    return false;
  Values results;
  for (uint32_t i = 0; i < count; ++i) {
    std::optional<Value> result = reduce(operands, i);
    if (!result)
      return false;
    results.push_back(*result);
  }
  if (!admitsExtents(operands, target))
    return false;
  std::string line = indent + "reduce(";
  for (Place source : sources)
    line += (line.back() == '(' ? "" : ", ") + textOf(source, count);
  body += line + ").into(" + textOf(target, count) + ");\n";
  for (const Values &values : operands)
    for (const Value &value : values)
      consumed.insert(value.reduction);
  write(target, results);
  ++statements;
  return true;
}

void Reference::begin(const std::string &block) {
  body += indent + block + " {\n";
  indent += "  ";
}

void Reference::end() {
  indent.resize(indent.size() - 2);
  body += indent + "}\n";
}

std::vector<Required> Reference::required() {
  std::vector<Required> outputs;
  for (uint32_t rank = 0; rank < form.ranks; ++rank)
    for (uint32_t chunk = 0; chunk < form.sizes[1]; ++chunk) {
      std::optional<Value> value = at({Buffer::Output, rank, chunk});
      if (value &&
          (value->reduction == Value::kNoReduction || !consumed.contains(value->reduction)))
        outputs.push_back({rank, chunk, *value});
    }
  return outputs;
}

std::string Reference::requirements() {
  std::string text;
  uint32_t chunks = form.sizes[0];
  for (const Required &output : required()) {
    std::string operands;
    for (uint32_t i = 0; i < form.ranks * chunks; ++i)
      if (output.value.contributions[i])
        operands +=
            (operands.empty() ? "" : ", ") + textOf({Buffer::Input, i / chunks, i % chunks}, 1);
    bool isReduction = output.value.contributions.count() > 1;
    text += "    " + textOf({Buffer::Output, output.rank, output.chunk}, 1) +
            " == " + (isReduction ? "reduce(" + operands + ")" : operands) + ";\n";
  }
  return text;
}

std::string Reference::text(const std::string &clauses) {
  std::string promises = requirements();
  if (promises.empty())
    return "";
  std::string text =
      "collective random(ranks: int) {\n  input[r]: " + std::to_string(form.sizes[0]) +
      ";\n  output[r]: " + std::to_string(form.sizes[1]) + ";\n  part " +
      std::to_string(form.partChunks) + ";\n";
  if (form.inPlace)
    text += "  inplace input[r] at " + std::to_string(form.offset) + ";\n";
  text += "  post {\n" + promises + "  }\n}\nalgorithm random_program() implements random(" +
          std::to_string(form.ranks) + ")" + clauses;
  if (!form.outOfPlace)
    text += " modes in_place";
  return text + " {\n  scratch s[" + std::to_string(form.sizes[2]) + "];\n" + body + "}\n";
}

} // namespace occl::random
