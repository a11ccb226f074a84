// What the unit tests of the frontend share.
#pragma once

#include "compiler/frontend/elaborate/Elaborate.h"
#include "compiler/frontend/sema/Program.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::frontend::testing {

/// Writes operations down as "copy 0 -> output[1][0]": the number is that of the line that made the
/// value.
class RecordingSink : public ChunkSink {
public:
  ChunkHandle read(const ChunkRange &source, SourceRange) override {
    return add("read " + describe(source));
  }
  ChunkHandle copy(ChunkHandle source, const ChunkRange &destination, SourceRange) override {
    return add("copy " + number(source) + " -> " + describe(destination));
  }
  ChunkHandle reduce(std::span<const ChunkHandle> from, const ChunkRange &destination,
                     SourceRange) override {
    std::string text = "reduce";
    for (ChunkHandle handle : from)
      text += " " + number(handle);
    return add(text + " -> " + describe(destination));
  }
  void useHints(const Hints &hints) override { suffix = describe(hints); }

  std::vector<std::string> lines;

private:
  static std::string number(ChunkHandle handle) { return std::to_string(handle); }
  static std::string describe(const ChunkRange &range) {
    constexpr const char *kNames[] = {"input", "output", "scratch"};
    std::string text = std::string(kNames[static_cast<int>(range.buffer)]) + "[" +
                       std::to_string(range.rank) + "][" + std::to_string(range.index) + "]";
    return range.count == 1 ? text : text + "*" + std::to_string(range.count);
  }
  /// " channel 1 parallel 2", of what is asked for.
  static std::string describe(const Hints &hints) {
    std::string text;
    auto add = [&](const char *name, int32_t value, int32_t none) {
      if (value != none)
        text += std::string(" ") + name + " " + std::to_string(value);
    };
    add("channel", hints.channel, -1);
    add("parallel", hints.parallel, 1);
    add("group", hints.aggregate, -1);
    add("send", hints.sendBlock, -1);
    add("recv", hints.recvBlock, -1);
    return text;
  }
  ChunkHandle add(std::string line) {
    bool isRead = line.starts_with("read");
    lines.push_back(isRead ? std::move(line) : line + suffix);
    return static_cast<ChunkHandle>(lines.size() - 1);
  }

  std::string suffix;
};

/// The outcome of a compilation without MLIR.
struct Compilation {
  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  Program program;
  RecordingSink sink;
  std::optional<ProgramInfo> info;

  /// Codes of all errors, separated by blanks.
  std::string codes() const {
    std::string text;
    for (const Diagnostic &diagnostic : diagnostics.all())
      text += (text.empty() ? "" : " ") + std::string(codeOf(diagnostic.code));
    return text;
  }
};

/// Compiles the first algorithm of the text.
inline std::unique_ptr<Compilation> compile(const std::string &text,
                                            ElaborationOptions options = {},
                                            std::vector<std::string> importPaths = {}) {
  auto result = std::make_unique<Compilation>();
  FileId file = result->sources.addText("test.coll", text);
  result->program = loadProgram(result->sources, file, importPaths, result->diagnostics);
  resolve(result->program, result->sources, result->diagnostics);
  const auto &algorithms = result->program.main().algorithms;
  if (!result->diagnostics.hasErrors() && !algorithms.empty())
    result->info = elaborate(result->program, algorithms.front(), options, result->sources,
                             result->sink, result->diagnostics);
  return result;
}

} // namespace occl::frontend::testing
