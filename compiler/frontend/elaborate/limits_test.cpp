// The limits that `occlc limits` prints are those that programs meet: at each of them a program is
// right, and one above it the error names the number. What a program cannot reach in a test
// (instructions, operands in all) plan/io/limits_test.cpp has with lower limits.
#include "compiler/frontend/elaborate/Testing.h"
#include "compiler/frontend/memory/Layout.h"
#include "plan/model/limits.h"

#include <gtest/gtest.h>

namespace occl::frontend::testing {
namespace {

/// "" for a right program, else code and message of the first error.
std::string errorOf(const std::string &text, const std::string &ranks = "") {
  ElaborationOptions options;
  if (!ranks.empty())
    options.defines.push_back("ranks=" + ranks);
  auto result = compile(text, options);
  if (!result->diagnostics.hasErrors())
    return "";
  const Diagnostic &first = result->diagnostics.all().front();
  return std::string(codeOf(first.code)) + ": " + first.message;
}

TEST(Limits, Ranks) {
  const std::string text = "algorithm a(ranks: int = 2) implements broadcast(ranks, 1) {\n"
                           "  var c = input[0][0].copy(output[0][0]);\n"
                           "  for r in 1..ranks { c = c.copy(output[r][0]); }\n}\n";
  EXPECT_EQ(errorOf(text, std::to_string(plan::limits::kMaxRanks)), "");
  EXPECT_EQ(errorOf(text, std::to_string(plan::limits::kMaxRanks + 1)),
            "E037: a collective has 1 to " + std::to_string(plan::limits::kMaxRanks) +
                " ranks, not " + std::to_string(plan::limits::kMaxRanks + 1));
}

TEST(Limits, Chunks) {
  auto broadcast = [](uint64_t chunks) {
    std::string range = "[0][0.." + std::to_string(chunks) + "]";
    return errorOf("algorithm a() implements broadcast(1, " + std::to_string(chunks) +
                   ") modes out_of_place { input" + range + ".copy(output" + range + "); }");
  };
  EXPECT_EQ(broadcast(plan::limits::kMaxChunks), "");
  EXPECT_NE(broadcast(plan::limits::kMaxChunks + 1)
                .find("not in the range 0 to " + std::to_string(plan::limits::kMaxChunks)),
            std::string::npos);
}

TEST(Limits, ChunksOfAllBuffers) {
  EXPECT_EQ(kMaxLocations, plan::limits::kMaxTotalChunks);
  // So the ring of as many ranks as there may be is within them, in chunks and in operations.
  uint64_t ranks = plan::limits::kMaxRanks;
  EXPECT_LE(2 * ranks * ranks, kMaxLocations);
  EXPECT_LE(3 * ranks * ranks, defaultMaxOps(ranks));
  EXPECT_LE(ranks * (2 * ranks - 1), plan::limits::kMaxInstructions);
  std::string error =
      errorOf("algorithm a() implements allreduce(9, " + std::to_string(plan::limits::kMaxChunks) +
              ") modes out_of_place { }");
  EXPECT_EQ(error, "E037: all buffers of all ranks together have " +
                       std::to_string(18 * uint64_t{plan::limits::kMaxChunks}) +
                       " chunks; at most " + std::to_string(plan::limits::kMaxTotalChunks) +
                       " are possible: cut buffers into fewer chunks, or take fewer ranks");
  auto withScratch = [](uint64_t slots) {
    return errorOf("algorithm a() implements broadcast(16, 1) modes out_of_place {\n"
                   "  scratch s[r]: r == 0 ? " +
                   std::to_string(slots) + " : " + std::to_string(plan::limits::kMaxChunks) +
                   ";\n  for r in 0..16 { input[0][0].copy(output[r][0]); }\n}\n");
  };
  // 16 outputs and an input, or as many inputs.
  EXPECT_NE(withScratch(plan::limits::kMaxChunks)
                .find("more than " + std::to_string(plan::limits::kMaxTotalChunks) + " chunks"),
            std::string::npos);
}

TEST(Limits, ChannelsAndThreadBlocks) {
  auto copy = [](const std::string &hint) {
    return errorOf("algorithm a() implements broadcast(2, 1) {\n"
                   "  input[0][0].copy(output[1][0], " +
                   hint + ");\n  input[0][0].copy(output[0][0]);\n}\n");
  };
  for (auto [hint, most] : {std::pair("channel = ", plan::limits::kMaxChannels - 1),
                            {"send = ", plan::limits::kMaxThreadBlocks - 1},
                            {"parallelize = ", plan::limits::kMaxChannels}}) {
    EXPECT_EQ(copy(hint + std::to_string(most)), "");
    std::string error = copy(hint + std::to_string(most + 1));
    EXPECT_EQ(error.substr(0, 5), "E038:") << error;
    EXPECT_NE(error.find(std::to_string(most)), std::string::npos) << error;
  }
}

TEST(Limits, OperationsFollowTheNumberOfRanks) {
  EXPECT_EQ(defaultMaxOps(2), 4194304u);
  EXPECT_EQ(defaultMaxOps(1024), 4194304u);
  EXPECT_EQ(defaultMaxOps(2048), 16777216u);
  EXPECT_EQ(defaultMaxOps(4096), 67108864u);
}

TEST(Limits, AnEditorsBudgetEndsTheRun) {
  ElaborationOptions options;
  options.maxSteps = 1000;
  EXPECT_EQ(compile("algorithm a() implements allreduce(1, 1) { for i in 0..999999 { } }", options)
                ->codes(),
            "E034");
  options.maxChunks = 1000;
  EXPECT_EQ(compile("algorithm a() implements allreduce(100, 6) { }", options)->codes(), "E034");
  EXPECT_EQ(
      compile("algorithm a() implements allreduce(100, 4) { scratch s[4]; }", options)->codes(),
      "E034");
}

} // namespace
} // namespace occl::frontend::testing
