// The table of names, also of programs that are not finished, and of files that are not saved.
#include "compiler/frontend/sema/Program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace occl::frontend {
namespace {

struct Resolved {
  explicit Resolved(const std::string &text, const Overlay *overlay = nullptr,
                    const std::string &path = "test.coll")
      : sources(overlay), file(sources.addText(path, text)),
        program(loadProgram(sources, file, {}, diagnostics)) {
    resolve(program, sources, diagnostics, &names);
  }

  /// The byte where `context` has a '^', which is no part of it.
  uint32_t offsetOf(std::string context) const {
    size_t mark = context.find('^');
    context.erase(mark, 1);
    size_t found = sources.text(file).find(context);
    EXPECT_NE(found, std::string_view::npos) << context;
    return static_cast<uint32_t>(found + mark);
  }
  const Definition *at(const std::string &context) const {
    return names.at(file, offsetOf(context));
  }
  /// The visible names, in order, separated by blanks.
  std::string visibleAt(const std::string &context) const {
    std::vector<std::string> found;
    for (const Definition *definition : names.visibleAt(file, offsetOf(context)))
      found.emplace_back(definition->name);
    std::sort(found.begin(), found.end());
    std::string text;
    for (const std::string &name : found)
      text += (text.empty() ? "" : " ") + name;
    return text;
  }

  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  FileId file;
  Program program;
  NameTable names;
};

constexpr const char *kProgram = R"(
function half(n: int) -> int { return n / 2; }
collective mine(ranks: int, chunks: int, first: int = 0) {
  input[r]: r == first ? chunks : 0;
  output[q]: chunks;
  post for p in 0..ranks { output[p][0..chunks] == input[first][0..chunks]; }
}
algorithm a(ranks: int = 4) implements mine(ranks, chunks = half(ranks), first = 1) modes out_of_place {
  scratch buffer[2];
  let list = [2 * i for i in 0..ranks where i != 1];
  var c = input[1][0..half(4)];
  for r in 0..ranks where r != 1 {
    let next = c.copy(output[r][0]);
    c = next;
  }
  if ranks > 1 { let inner = 1; } else { let other = 2; }
  c.copy(output[1][0]);
}
)";

TEST(Names, DefinitionsAndUses) {
  Resolved r(kProgram);
  const Definition *c = r.at("var ^c");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->kind, NameKind::Var);
  EXPECT_EQ(c->type, Type::Chunk);
  EXPECT_EQ(r.at("let next = ^c.copy"), c);
  EXPECT_EQ(r.at("let next = c^.copy"), c); // just behind it
  EXPECT_EQ(r.at("    ^c = next"), c);
  EXPECT_EQ(r.names.usesOf(*c).size(), 3u);
  EXPECT_EQ(r.at("half^(4)"), r.at("function ^half"));
  EXPECT_EQ(r.names.usesOf(*r.at("function ^half")).size(), 2u);
  EXPECT_EQ(r.at("^first = 1"), r.at("^first: int"));
  EXPECT_EQ(r.at("implements ^mine"), r.at("collective ^mine"));
  EXPECT_EQ(r.at("[2 * ^i"), r.at("for ^i in"));
  EXPECT_EQ(r.at("re^turn n"), nullptr);
}

TEST(Names, Visibility) {
  Resolved r(kProgram);
  EXPECT_EQ(r.visibleAt("^scratch buffer"), "ranks");
  EXPECT_EQ(r.visibleAt("[^2 * i"), "buffer i ranks");
  EXPECT_EQ(r.visibleAt("^c.copy(output[r]"), "buffer c list r ranks");
  EXPECT_EQ(r.visibleAt("    ^c = next"), "buffer c list next r ranks");
  EXPECT_EQ(r.visibleAt("let ^other"), "buffer c list ranks");
  EXPECT_EQ(r.visibleAt("^r == first"), "chunks first r ranks");
  EXPECT_EQ(r.visibleAt("^output[p]"), "chunks first p ranks");
  EXPECT_EQ(r.visibleAt("return ^n"), "n");
}

TEST(Names, OfAProgramThatIsNotFinished) {
  Resolved r("algorithm a(ranks: int = 4) implements allreduce(ranks, 1) {\n"
             "  let n = 2;\n"
             "  for r in 0..ranks {\n"
             "    let m = r;\n"
             "    input[r].\n");
  EXPECT_TRUE(r.diagnostics.hasErrors());
  EXPECT_EQ(r.visibleAt("    ^input"), "m n r ranks");
  EXPECT_EQ(r.at("let m = ^r"), r.at("for ^r"));
}

TEST(Names, OfFilesThatAreNotSaved) {
  Overlay overlay;
  std::string folder = ::testing::TempDir();
  overlay.set(folder + "/./other.coll", "function twice(n: int) -> int { return 2 * n; }\n");
  std::string text = "import \"other.coll\";\nfunction f() -> int { return twice(2); }\n";
  Resolved r(text, &overlay, folder + "/test.coll");
  EXPECT_EQ(r.diagnostics.render(), "");
  const Definition *twice = r.at("return ^twice");
  ASSERT_TRUE(twice);
  EXPECT_EQ(r.program.main().imports[0].file, twice->range.file);
  EXPECT_EQ(r.sources.name(twice->range.file), folder + "other.coll");

  overlay.erase(folder + "/other.coll");
  Resolved without(text, &overlay, folder + "/test.coll");
  EXPECT_TRUE(without.diagnostics.hasErrors());
  EXPECT_EQ(without.program.main().imports[0].file, SourceRange::kNoFile);
}

TEST(Names, OfTheLibrary) {
  size_t files = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator("algorithms")) {
    if (entry.path().extension() != ".coll")
      continue;
    ++files;
    SourceManager sources;
    DiagnosticEngine diagnostics(sources);
    std::string reason;
    FileId file = *sources.addFile(entry.path().string(), reason);
    Program program = loadProgram(sources, file, {}, diagnostics);
    NameTable names;
    resolve(program, sources, diagnostics, &names);
    for (const Expr &expr : program.main().expressions) {
      bool isName = expr.kind == ExprKind::Variable || expr.kind == ExprKind::Scratch ||
                    expr.kind == ExprKind::Call;
      const Definition *definition = names.at(file, expr.nameRange.begin);
      if (isName && !expr.name.empty()) {
        ASSERT_TRUE(definition) << entry.path() << ": " << expr.name;
        EXPECT_EQ(definition->name, expr.name);
      }
    }
  }
  EXPECT_GE(files, 20u);
}

} // namespace
} // namespace occl::frontend
