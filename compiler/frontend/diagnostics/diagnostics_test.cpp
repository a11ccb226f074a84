#include "compiler/frontend/diagnostics/Diagnostics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

namespace occl::frontend {
namespace {

TEST(SourceManager, LinesAndColumns) {
  SourceManager sources;
  FileId file = sources.addText("f", "ab\n\ncd\r\ne");
  EXPECT_EQ(sources.lineColumn(file, 0).line, 1u);
  EXPECT_EQ(sources.lineColumn(file, 2).column, 3u);
  EXPECT_EQ(sources.lineColumn(file, 3).line, 2u);
  EXPECT_EQ(sources.lineColumn(file, 5).line, 3u);
  EXPECT_EQ(sources.lineColumn(file, 9).line, 4u);
  EXPECT_EQ(sources.lineText(file, 2), "");
  EXPECT_EQ(sources.lineText(file, 3), "cd");
  EXPECT_EQ(sources.lineText(file, 4), "e");
}

TEST(SourceManager, RefusesWhatIsNoFile) {
  SourceManager sources;
  std::string reason;
  EXPECT_FALSE(sources.addFile("/no/such/file", reason));
  EXPECT_EQ(reason, "No such file or directory");
  EXPECT_FALSE(sources.addFile("/", reason));
  EXPECT_EQ(reason, "it is a directory");
  EXPECT_FALSE(sources.addFile("/dev/zero", reason));
  EXPECT_EQ(reason, "it is larger than 16 MiB");
}

TEST(Diagnostics, ShowsPlaceRangeFixItAndNote) {
  SourceManager sources;
  FileId file = sources.addText("f.coll", "let a = bb;\nlet c;");
  DiagnosticEngine diagnostics(sources);
  diagnostics.error(DiagnosticCode::UnknownName, {file, 8, 10}, "no 'bb'")
      .fixIt({file, 8, 10}, "b")
      .note({file, 16, 17}, "see here");
  diagnostics.error(DiagnosticCode::NoAlgorithm, {}, "nothing to do");
  EXPECT_EQ(diagnostics.render(), "f.coll:1:9: error: no 'bb' [E010]\n"
                                  "let a = bb;\n"
                                  "        ^~\n"
                                  "        b\n"
                                  "f.coll:2:5: note: see here\n"
                                  "let c;\n"
                                  "    ^\n"
                                  "error: nothing to do [E018]\n"
                                  "2 errors.\n");
}

TEST(Diagnostics, RangeOverLinesEndsWithTheFirst) {
  SourceManager sources;
  FileId file = sources.addText("f", "ab\ncd");
  DiagnosticEngine diagnostics(sources);
  diagnostics.error(DiagnosticCode::WrongType, {file, 1, 5}, "x");
  EXPECT_EQ(diagnostics.render(), "f:1:2: error: x [E012]\nab\n ^\n1 error.\n");
}

TEST(Diagnostics, ControlCharactersDoNotReachTheTerminal) {
  SourceManager sources;
  FileId file = sources.addText("f", "a\x1b[2J\tb");
  DiagnosticEngine diagnostics(sources);
  diagnostics.error(DiagnosticCode::WrongType, {file, 0, 1}, "x");
  EXPECT_EQ(diagnostics.render().find('\x1b'), std::string::npos);
}

TEST(Diagnostics, RepetitionsAndFloodsAreDropped) {
  SourceManager sources;
  FileId file = sources.addText("f", std::string(100, 'x'));
  DiagnosticEngine diagnostics(sources);
  for (uint32_t i = 0; i < 60; ++i)
    diagnostics.error(DiagnosticCode::WrongType, {file, i / 2, i / 2 + 1}, "x");
  EXPECT_EQ(diagnostics.numErrors(), DiagnosticEngine::kMaxErrors);
  EXPECT_TRUE(diagnostics.isFull());
}

TEST(Diagnostics, CodesAreUniqueAndAscending) {
  std::string last;
  for (DiagnosticCode code : allDiagnosticCodes()) {
    EXPECT_LT(last, codeOf(code));
    last = codeOf(code);
  }
}

TEST(Diagnostics, EveryCodeIsDocumented) {
  std::ifstream stream("docs/language.md");
  std::string docs((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  for (DiagnosticCode code : allDiagnosticCodes())
    EXPECT_NE(docs.find("| " + std::string(codeOf(code)) + " | " + summaryOf(code) + " |"),
              std::string::npos)
        << codeOf(code) << " " << summaryOf(code);
}

} // namespace
} // namespace occl::frontend
