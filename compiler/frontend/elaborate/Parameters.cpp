// The parameters of the algorithm: from -D, or from their defaults.
#include "compiler/frontend/elaborate/Elaborator.h"
#include "support/suggestion.h"

#include <algorithm>
#include <charconv>

namespace occl::frontend {
namespace {

/// A number, or a list as it is written on a command line: [0,2,1], [0..4,6], [[1,2],[3]].
class ValueReader {
public:
  explicit ValueReader(std::string_view text) : at(text.data()), end(at + text.size()) {}

  bool isAtEnd() {
    skipBlanks();
    return at == end;
  }

  bool readInt(int64_t &out) {
    skipBlanks();
    auto [next, status] = std::from_chars(at, end, out);
    at = next;
    return status == std::errc();
  }

  bool readList(Type type, ListRef &out) {
    // "[1, 2, 5..8]" or "[[1], [2, 3]]", with blanks anywhere.
    auto list = std::make_shared<List>();
    if (!accept("["))
      return false;
    if (!accept("]")) {
      do {
        if (!readElement(type, *list))
          return false;
      } while (accept(","));
      if (!accept("]"))
        return false;
    }
    out = std::move(list);
    return true;
  }

private:
  static constexpr size_t kMaxElements = 1u << 20;

  void skipBlanks() {
    while (at != end && *at == ' ')
      ++at;
  }

  bool accept(std::string_view token) {
    skipBlanks();
    if (!std::string_view(at, static_cast<size_t>(end - at)).starts_with(token))
      return false;
    at += token.size();
    return true;
  }

  bool readElement(Type type, List &list) {
    // A matrix has rows; a list of numbers has numbers and ranges.
    if (type == Type::IntMatrix) {
      ListRef row;
      bool good = readList(Type::IntList, row);
      list.rows.push_back(std::move(row));
      return good;
    }
    int64_t first, last;
    if (!readInt(first))
      return false;
    if (!accept("..")) {
      list.ints.push_back(first);
      return list.ints.size() <= kMaxElements;
    }
    if (!readInt(last))
      return false;
    // Ranges end at the limit, not at their last number, which may be 2^62.
    for (int64_t value = first; value < last && list.ints.size() <= kMaxElements; ++value)
      list.ints.push_back(value);
    return list.ints.size() <= kMaxElements;
  }

  const char *at;
  const char *end;
};

/// All numbers of a list with their names, "order[0]" or "counts[1][0]".
void flatten(const std::string &name, const List &list,
             std::vector<std::pair<std::string, int64_t>> &out) {
  for (size_t i = 0; i < list.ints.size(); ++i)
    out.emplace_back(name + "[" + std::to_string(i) + "]", list.ints[i]);
  for (size_t i = 0; i < list.rows.size(); ++i)
    flatten(name + "[" + std::to_string(i) + "]", *list.rows[i], out);
}

/// FNV-1a of the lengths and numbers, without sign.
void mix(const List &list, uint64_t &state) {
  auto add = [&](uint64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8)
      state = (state ^ (number >> shift & 0xff)) * 0x100000001b3;
  };
  add(list.size());
  for (int64_t value : list.ints)
    add(static_cast<uint64_t>(value));
  for (const ListRef &row : list.rows)
    mix(*row, state);
}

size_t numbersIn(const List &list) {
  size_t count = list.ints.size();
  for (const ListRef &row : list.rows)
    count += row->size();
  return count;
}

} // namespace

bool Elaborator::bindParameters() {
  bool good = true;
  for (const std::string &define : options.defines)
    good &= parseDefine(define);
  for (size_t i = 0; i < algorithm.params.size() && good; ++i)
    good &= bindParameter(i);
  return good;
}

bool Elaborator::parseValue(std::string_view text, Type type, Value &out) {
  out.type = type;
  // Words for truth values, as in the language.
  if (type == Type::Bool) {
    out.scalar = text == "true";
    return out.scalar || text == "false";
  }
  ValueReader reader(text);
  bool good = type == Type::Int ? reader.readInt(out.scalar) : reader.readList(type, out.list);
  return good && reader.isAtEnd();
}

void Elaborator::recordParameter(const Param &param, const Value &value) {
  // A plan has room for some numbers, not for all those of a big matrix.
  constexpr size_t kMaxRecorded = 64;
  std::string name(param.name);
  if (!value.list)
    info.parameters.emplace_back(name, value.scalar);
  else if (numbersIn(*value.list) <= kMaxRecorded)
    flatten(name, *value.list, info.parameters);
  else {
    uint64_t state = 0xcbf29ce484222325;
    mix(*value.list, state);
    info.parameters.emplace_back(name + ".length", value.list->size());
    info.parameters.emplace_back(name + ".hash", static_cast<int64_t>(state >> 1));
  }
}

bool Elaborator::parseDefine(const std::string &define) {
  // The definition becomes a text of its own, so that errors point into the command line.
  FileId file = sources.addText("<command line>", "-D " + define);
  auto length = static_cast<uint32_t>(define.size());
  auto equals = static_cast<uint32_t>(std::min(define.find('='), define.size()));
  constexpr uint32_t kPrefix = 3; // "-D "
  SourceRange nameRange{file, kPrefix, kPrefix + equals};
  std::string name = define.substr(0, equals);
  if (equals == length) {
    diagnostics.error(DiagnosticCode::BadDefine, nameRange,
                      "a definition is written -D name=value");
    return false;
  }
  std::vector<std::string_view> names;
  for (const Param &param : algorithm.params)
    names.push_back(param.name);
  bool isKnown = std::find(names.begin(), names.end(), name) != names.end();
  // It is the topology's.
  if (!isKnown && options.topology && options.topology->hasParameter(name))
    return true;
  if (!isKnown) {
    diagnostics
        .error(DiagnosticCode::BadDefine, nameRange,
               "the algorithm '" + info.name + "' has no parameter '" + name + "'" +
                   support::didYouMean(support::suggest(name, names)))
        .note(algorithm.nameRange, "declared here");
    return false;
  }
  SourceRange valueRange{file, kPrefix + equals + 1, kPrefix + length};
  // Of several definitions of one name the last counts, as in other compilers.
  std::erase_if(defines, [&](const Define &earlier) { return earlier.name == name; });
  defines.push_back({name, define.substr(equals + 1), valueRange});
  return true;
}

bool Elaborator::bindParameter(size_t index) {
  // From -D, else the default; without either the program cannot be run.
  const Param &param = algorithm.params[index];
  Value &value = slot(static_cast<uint32_t>(index));
  auto define = std::find_if(defines.begin(), defines.end(),
                             [&](const Define &entry) { return entry.name == param.name; });
  if (define != defines.end()) {
    const std::string &text = define->value;
    bool good = parseValue(text, param.type, value);
    if (!good) {
      diagnostics
          .error(DiagnosticCode::BadDefine, define->range,
                 "'" + text + "' is not a value of type '" + nameOf(param.type) + "'")
          .note(param.nameRange, "declared here");
      return false;
    }
  } else if (!param.defaultValue) {
    diagnostics.error(DiagnosticCode::MissingValue, param.nameRange,
                      "the parameter '" + std::string(param.name) +
                          "' has no value; give one with -D " + std::string(param.name) +
                          "=<value>");
    return false;
  } else {
    // Defaults may refer to parameters before them.
    Value computed;
    if (!evaluate(*param.defaultValue, param.type, computed))
      return false;
    slot(static_cast<uint32_t>(index)) = std::move(computed);
  }
  // What the plan will say of it.
  recordParameter(param, slot(static_cast<uint32_t>(index)));
  show(param.nameRange, slot(static_cast<uint32_t>(index)));
  return true;
}

} // namespace occl::frontend
