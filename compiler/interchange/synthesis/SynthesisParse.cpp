#include "compiler/interchange/synthesis/Synthesis.h"

#include "compiler/diagnostics/JsonPlace.h"
#include "plan/model/limits.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace occl::interchange::synthesis {

using frontend::DiagnosticCode;
using frontend::SourceRange;
using nlohmann::json;

namespace {

constexpr int kMaxDepth = 16;
constexpr uint32_t kMaxChunks = 1u << 20;
constexpr uint32_t kMaxAddress = 1u << 24;

/// Bytes [begin, end).
using Span = std::pair<uint32_t, uint32_t>;

/// The places of the sends in a text that is valid JSON: of each array directly within the value of
/// a key "sends", in order.
std::vector<std::vector<Span>> findSends(std::string_view text) {
  // The JSON library keeps no places; the text is scanned once for brackets, which is enough to
  // find those of sends.
  std::vector<std::vector<Span>> result;
  int depth = 0, sendsDepth = -1;
  bool afterKey = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    // Strings are skipped whole, as they may contain brackets; a string may be the key that is
    // looked for.
    if (c == '"') {
      size_t begin = i + 1;
      for (++i; text[i] != '"'; ++i)
        i += text[i] == '\\';
      afterKey = text.substr(begin, i - begin) == "sends";
    } else if (c == '[' || c == '{') {
      // An array under that key, or one directly within it.
      if (c == '[' && afterKey) {
        sendsDepth = depth + 1;
        result.emplace_back();
      } else if (c == '[' && depth == sendsDepth) {
        result.back().push_back({static_cast<uint32_t>(i), 0});
      }
      ++depth;
      afterKey = false;
    } else if (c == ']' || c == '}') {
      // The end of a send, or of the array of sends.
      if (--depth < sendsDepth)
        sendsDepth = -1;
      else if (depth == sendsDepth && !result.back().empty())
        result.back().back().second = static_cast<uint32_t>(i + 1);
    } else if (c == ',') {
      afterKey = false;
    }
  }
  return result;
}

class Parser {
public:
  Parser(std::string_view text, frontend::FileId file, frontend::DiagnosticEngine &diagnostics)
      : text(text), file(file), diagnostics(diagnostics) {}

  std::optional<Algorithm> run() {
    // Members in the order in which later ones need earlier ones: numbers of ranks, then of parts,
    // before chunks and steps.
    algorithm.text = text;
    json document = parseText();
    if (failed || !checkKind(document))
      return std::nullopt;
    const json &collective = member(document, "collective", "");
    algorithm.name = stringOf(document, "name", "");
    algorithm.collective = stringOf(collective, "name", "collective.");
    algorithm.numRanks = integer(member(collective, "nodes", "collective."), 1,
                                 plan::limits::kMaxRanks, "collective.nodes");
    readParts(document);
    readChunks(member(collective, "chunks", "collective."));
    readSteps(member(document, "steps", ""));
    return failed ? std::nullopt : std::optional(std::move(algorithm));
  }

private:
  void fail(DiagnosticCode code, const std::string &message, SourceRange place = {}) {
    if (!failed)
      diagnostics.error(code, place.isValid() ? place : SourceRange{file, 0, 1}, message);
    failed = true;
  }

  /// At the value that `path` leads to, or as much of it as there is.
  void failAt(const std::string &path, const std::string &message) {
    fail(DiagnosticCode::JsonWrongMember, message, placeInJson(text, file, path));
  }

  json parseText() {
    // The parser takes a zero byte for the end; whoever looks for places in the text does not.
    if (size_t zero = text.find('\0'); zero != std::string_view::npos) {
      auto at = static_cast<uint32_t>(zero);
      fail(DiagnosticCode::JsonMalformed, "this is not JSON", {file, at, at + 1});
      return {};
    }
    // The library parses recursively into values: its depth is limited by a callback, before it can
    // overflow the stack.
    bool tooDeep = false;
    auto limitDepth = [&](int depth, json::parse_event_t, json &) {
      tooDeep |= depth > kMaxDepth;
      return !tooDeep;
    };
    try {
      json document = json::parse(text, limitDepth);
      if (tooDeep)
        fail(DiagnosticCode::ImportTooLarge,
             "values nest deeper than " + std::to_string(kMaxDepth) + " levels");
      return document;
    } catch (const json::parse_error &error) {
      auto at = static_cast<uint32_t>(std::min(error.byte > 0 ? error.byte - 1 : 0, text.size()));
      fail(DiagnosticCode::JsonMalformed, "this is not JSON", {file, at, at + 1});
    } catch (const json::out_of_range &) {
      fail(DiagnosticCode::JsonMalformed, "a number is too large");
    }
    return {};
  }

  bool checkKind(const json &document) {
    for (const char *key : {"msccl_type", "sccl_type"})
      if (document.is_object() && document.contains(key) && document[key] == "algorithm")
        return true;
    fail(DiagnosticCode::JsonWrongMember,
         "this is no algorithm of SCCL or TACCL: 'msccl_type' or 'sccl_type' must be 'algorithm'");
    return false;
  }

  const json &member(const json &object, const char *name, const std::string &path) {
    static const json kNothing;
    if (object.is_object() && object.contains(name))
      return object[name];
    failAt(path + name, "there is no member '" + path + name + "'");
    return kNothing;
  }

  std::string stringOf(const json &object, const char *name, const std::string &path) {
    const json &value = member(object, name, path);
    if (value.is_string() &&
        value.get_ref<const std::string &>().size() <= plan::limits::kMaxNameLength)
      return value.get<std::string>();
    failAt(path + name, "'" + path + name + "' must be a string of at most " +
                            std::to_string(plan::limits::kMaxNameLength) + " bytes");
    return "";
  }

  uint32_t integer(const json &value, uint32_t low, uint32_t high, const std::string &path) {
    // Integers only: the library takes 1.0 for a float.
    if (value.is_number_integer()) {
      auto number = value.get<int64_t>();
      if (number >= low && number <= high)
        return static_cast<uint32_t>(number);
    }
    failAt(path, "'" + path + "' must be an integer from " + std::to_string(low) + " to " +
                     std::to_string(high));
    return low;
  }

  /// Addresses of sends are those of chunks cut into `parts`; the collective's are not cut.
  void readParts(const json &document) {
    // The synthesizer may cut each chunk of the collective into parts, and then addresses of sends
    // are those of the parts.
    if (!document.contains("instance") || !document["instance"].is_object())
      return;
    const json &instance = document["instance"];
    if (instance.contains("chunks") && !instance["chunks"].is_null())
      parts = integer(instance["chunks"], 1, 1u << 16, "instance.chunks");
    if (instance.contains("pipeline") && !instance["pipeline"].is_null())
      failAt("instance.pipeline",
             "the algorithm is pipelined: its steps say one round only of what repeats");
  }

  void readChunks(const json &chunks) {
    if (failed)
      return;
    // Bounded before anything is allocated, as parts multiply.
    if (!chunks.is_array() || chunks.empty() || chunks.size() * parts > kMaxChunks)
      return failAt("collective.chunks", "'collective.chunks' must be an array of 1 to " +
                                             std::to_string(kMaxChunks / parts) + " chunks");
    for (size_t i = 0; i < chunks.size() && !failed; ++i) {
      std::string path = "collective.chunks[" + std::to_string(i) + "].";
      Chunk chunk;
      chunk.number = static_cast<uint32_t>(i);
      uint32_t address =
          integer(member(chunks[i], "addr", path), 0, kMaxAddress / parts - 1, path + "addr");
      chunk.before = ranks(member(chunks[i], "pre", path), path + "pre");
      chunk.after = ranks(member(chunks[i], "post", path), path + "post");
      // One chunk of the file is as many here as there are parts.
      for (uint32_t part = 0; part < parts; ++part) {
        chunk.address = address * parts + part;
        algorithm.chunks.push_back(chunk);
      }
    }
  }

  std::vector<uint32_t> ranks(const json &list, const std::string &path) {
    std::vector<uint32_t> result;
    if (!failed && !list.is_array())
      failAt(path, "'" + path + "' must be an array of ranks");
    for (const json &rank : list) {
      if (failed)
        break;
      result.push_back(integer(rank, 0, algorithm.numRanks - 1, path));
    }
    // Sorted and each once, as sets.
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  void readSteps(const json &steps) {
    if (failed)
      return;
    if (!steps.is_array())
      return failAt("steps", "'steps' must be an array");
    // Places by a second look at the text; if the two do not agree, the first byte stands for all.
    std::vector<std::vector<Span>> places = findSends(text);
    for (size_t i = 0; i < steps.size() && !failed; ++i) {
      std::string path = "steps[" + std::to_string(i) + "].";
      const json &sends = member(steps[i], "sends", path);
      if (!failed && !sends.is_array())
        failAt(path + "sends", "'" + path + "sends' must be an array");
      std::vector<Send> &step = algorithm.steps.emplace_back();
      for (size_t s = 0; s < sends.size() && !failed; ++s) {
        bool isKnown = places.size() == steps.size() && places[i].size() == sends.size();
        auto [begin, end] = isKnown ? places[i][s] : Span(0, 1);
        step.push_back(
            send(sends[s], path + "sends[" + std::to_string(s) + "]", {file, begin, end}));
      }
    }
  }

  /// [address, source, target], followed by what only the synthesizer needs.
  Send send(const json &value, const std::string &path, SourceRange place) {
    // More elements are allowed: synthesizers put times and other things behind.
    if (!value.is_array() || value.size() < 3) {
      fail(DiagnosticCode::JsonWrongMember, "'" + path + "' must be [address, source, target]",
           place);
      return {};
    }
    Send result{integer(value[0], 0, kMaxAddress, path + "[0]"),
                integer(value[1], 0, algorithm.numRanks - 1, path + "[1]"),
                integer(value[2], 0, algorithm.numRanks - 1, path + "[2]"), place};
    if (result.source == result.target)
      fail(DiagnosticCode::JsonWrongMember,
           "'" + path + "' goes from rank " + std::to_string(result.source) + " to itself", place);
    return result;
  }

  std::string_view text;
  frontend::FileId file;
  frontend::DiagnosticEngine &diagnostics;
  Algorithm algorithm;
  uint32_t parts = 1;
  bool failed = false;
};

} // namespace

SourceRange placeInJson(std::string_view text, frontend::FileId file, std::string_view path) {
  std::optional<diagnostics::JsonSpan> span = diagnostics::findInJson(text, path);
  return span ? SourceRange{file, static_cast<uint32_t>(span->begin),
                            static_cast<uint32_t>(span->end)}
              : SourceRange{file, 0, 1};
}

std::optional<Algorithm> parse(const frontend::SourceManager &sources, frontend::FileId file,
                               frontend::DiagnosticEngine &diagnostics) {
  return Parser(sources.text(file), file, diagnostics).run();
}

} // namespace occl::interchange::synthesis
