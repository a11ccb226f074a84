#include "compiler/diagnostics/Report.h"

#include "gtest/gtest.h"

using namespace occl::diagnostics;

namespace {

TEST(Report, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(toJson(Report{.code = "E150", .message = "say \"why\""}),
            R"({"severity":"error","code":"E150","message":"say \"why\""})");
}

TEST(Report, HasAllParts) {
  Report report{
      .severity = Severity::Warning, .message = "m", .range = Range{"a.coll", 1, 2, 1, 5}};
  report.context = {{"rank", 3}, {"threadBlock", 0}};
  report.notes = {{Range{"b.coll"}, "n"}, {std::nullopt, "o"}};
  report.fixIts = {{Range{"a.coll", 1, 2, 1, 2}, ";"}};
  EXPECT_EQ(
      toJson(report),
      R"({"severity":"warning","message":"m",)"
      R"("range":{"file":"a.coll","line":1,"column":2,"endLine":1,"endColumn":5},)"
      R"("rank":3,"threadBlock":0,)"
      R"("notes":[{"message":"n","range":{"file":"b.coll"}},{"message":"o"}],)"
      R"("fixIts":[{"range":{"file":"a.coll","line":1,"column":2,"endLine":1,"endColumn":2},"text":";"}]})");
}

TEST(Report, SurvivesBytesThatAreNoText) {
  EXPECT_EQ(toJson(Report{.message = "\xff\n"}),
            "{\"severity\":\"error\",\"message\":\"\xEF\xBF\xBD\\n\"}");
}

} // namespace
