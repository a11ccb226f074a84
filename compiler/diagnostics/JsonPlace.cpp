#include "compiler/diagnostics/JsonPlace.h"

#include <charconv>

namespace occl::diagnostics {

namespace {

class Scanner {
public:
  explicit Scanner(std::string_view text) : text(text) { skipBlanks(); }

  size_t position() const { return at; }
  bool isAt(char c) const { return at < text.size() && text[at] == c; }

  bool take(char c) {
    if (!isAt(c))
      return false;
    ++at;
    skipBlanks();
    return true;
  }

  /// The end of the value that begins here; goes behind it, and the blanks that follow.
  size_t skipValue() {
    // Containers are skipped by counting brackets, as the text is known to be JSON, or nearly so:
    // this looks for places to show, and checks nothing.
    size_t depth = 0;
    do {
      if (isAt('"'))
        skipString();
      else if (at < text.size())
        skipBesidesStrings(depth);
    } while (depth > 0 && at < text.size());
    size_t end = at;
    skipBlanks();
    return end;
  }

  /// The contents of the string that begins here, with its escapes as they are.
  std::string_view string() {
    size_t begin = at + 1;
    skipString();
    std::string_view content = text.substr(begin, at > begin ? at - begin - 1 : 0);
    skipBlanks();
    return content;
  }

private:
  static bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void skipBlanks() {
    while (at < text.size() && isBlank(text[at]))
      ++at;
  }

  void skipString() {
    for (++at; at < text.size() && text[at] != '"'; ++at)
      if (text[at] == '\\')
        ++at;
    at = at < text.size() ? at + 1 : text.size();
  }

  /// A bracket, or everything up to what ends a number or word.
  void skipBesidesStrings(size_t &depth) {
    char c = text[at];
    // One character at a time is enough for brackets and what stands between them; a number or word
    // is taken to its end.
    if (c == '{' || c == '[') {
      ++depth;
      ++at;
      return;
    }
    if (depth > 0 && (c == '}' || c == ']'))
      --depth;
    if (depth > 0 || c == '}' || c == ']') {
      ++at;
      return;
    }
    while (at < text.size() && !isBlank(text[at]) && text[at] != ',' && text[at] != ']' &&
           text[at] != '}')
      ++at;
  }

  std::string_view text;
  size_t at = 0;
};

/// Goes to the value of a member of the object here. Where its key begins, if there is one.
std::optional<size_t> enterMember(Scanner &scanner, std::string_view name) {
  // Member by member, over values of any kind, until the key is found.
  if (!scanner.take('{'))
    return std::nullopt;
  while (scanner.isAt('"')) {
    size_t begin = scanner.position();
    bool isWanted = scanner.string() == name;
    if (!scanner.take(':'))
      return std::nullopt;
    if (isWanted)
      return begin;
    scanner.skipValue();
    if (!scanner.take(','))
      return std::nullopt;
  }
  return std::nullopt;
}

/// Goes to an element of the array here.
std::optional<size_t> enterElement(Scanner &scanner, size_t index) {
  // Elements have no keys: so many are skipped.
  if (!scanner.take('['))
    return std::nullopt;
  for (size_t i = 0; i < index; ++i) {
    scanner.skipValue();
    if (!scanner.take(','))
      return std::nullopt;
  }
  return scanner.isAt(']') ? std::nullopt : std::optional(scanner.position());
}

/// Takes the first step off `path` and goes it.
std::optional<size_t> enter(Scanner &scanner, std::string_view &path) {
  if (path.front() == '.')
    path.remove_prefix(1);
  if (!path.starts_with('[')) {
    std::string_view name = path.substr(0, path.find_first_of(".["));
    path.remove_prefix(name.size());
    return name.empty() ? std::nullopt : enterMember(scanner, name);
  }
  size_t index = 0, close = path.find(']');
  if (close == std::string_view::npos ||
      std::from_chars(path.data() + 1, path.data() + close, index).ptr != path.data() + close)
    return std::nullopt;
  path.remove_prefix(close + 1);
  return enterElement(scanner, index);
}

} // namespace

std::optional<JsonSpan> findInJson(std::string_view text, std::string_view path) {
  Scanner scanner(text);
  if (!scanner.isAt('{'))
    return std::nullopt;
  size_t begin = scanner.position();
  Scanner value = scanner;
  // Step by step along the path, as far as it leads: if the rest is missing, the last value found
  // is shown.
  while (!path.empty()) {
    std::optional<size_t> next = enter(scanner, path);
    if (!next)
      break;
    begin = *next;
    value = scanner;
  }
  return JsonSpan{begin, value.skipValue()};
}

} // namespace occl::diagnostics
