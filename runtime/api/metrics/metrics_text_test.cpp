#include "runtime/api/metrics/metrics_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace occl::communicator;

SequenceCounters sequence(uint64_t id) {
  SequenceCounters counters;
  counters.id = id;
  counters.collective.submitted = 5;
  counters.collective.completed = 4;
  counters.collective.finishNs = 1'250'000'000;
  counters.collective.longestFinishNs = 100'000'000;
  counters.blocks.bytesSent = 1ull << 60;
  counters.blocks.waitNs[occlWaitData] = 500;
  return counters;
}

bool hasLine(const std::string &text, const std::string &line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricsText, countersOfTheRank_haveItsLabels) {
  occlStats_t stats{};
  stats.quits = 3;
  stats.bytesSent = 99;
  const std::string text = metricsText(2, 4, stats, {}, "job=\"train\"");
  EXPECT_TRUE(hasLine(text, "occl_quits_total{rank=\"2\",size=\"4\",job=\"train\"} 3")) << text;
  EXPECT_TRUE(hasLine(text, "occl_rank_bytes_sent_total{rank=\"2\",size=\"4\",job=\"train\"} 99"));
  EXPECT_TRUE(hasLine(text, "# TYPE occl_queue_length_max gauge")) << text;
  EXPECT_EQ(text.find("occl_submitted_total{"), std::string::npos) << "there is no sequence";
  EXPECT_TRUE(text.ends_with("\n"));
}

TEST(MetricsText, countersOfSequences_haveTheirIds) {
  const std::string text =
      metricsText(0, 2, occlStats_t{}, {sequence(7), sequence(OCCL_CALLS)}, "");
  for (const std::string id : {"7", "calls"}) {
    const std::string labels = "{rank=\"0\",size=\"2\",id=\"" + id + "\"";
    EXPECT_TRUE(hasLine(text, "occl_submitted_total" + labels + "} 5")) << text;
    EXPECT_TRUE(hasLine(text, "occl_completed_total" + labels + "} 4"));
    EXPECT_TRUE(hasLine(text, "occl_finish_seconds_total" + labels + "} 1.25"));
    EXPECT_TRUE(hasLine(text, "occl_finish_seconds_max" + labels + "} 0.1"));
    EXPECT_TRUE(hasLine(text, "occl_bytes_sent_total" + labels + "} 1152921504606846976"));
    EXPECT_TRUE(hasLine(text, "occl_wait_seconds_total" + labels + ",reason=\"data\"} 0.0000005"));
    EXPECT_TRUE(hasLine(text, "occl_wait_seconds_total" + labels + ",reason=\"begin\"} 0"));
  }
  size_t heads = 0, last = 0;
  for (size_t at = 0; (at = text.find("# TYPE occl_submitted_total", at)) != std::string::npos;)
    ++heads, last = at, ++at;
  EXPECT_EQ(heads, 1u) << "samples of a metric stand together";
  EXPECT_GT(text.find("occl_submitted_total{"), last);
}

TEST(MetricsText, labels_areNamesAndQuotedValues) {
  for (const char *good : {"", "a=\"\"", "job=\"train\",host_2=\"x=,y\"", R"(a="\"\\\n")"})
    EXPECT_EQ(whyNoLabels(good), "") << good;
  for (const char *bad :
       {"a", "a=", "a=b", "=\"b\"", "2a=\"b\"", "a-b=\"c\"", "__a=\"b\"", "a=\"b", "a=\"b\\\"",
        "a=\"\\x\"", "a=\"b\nc\"", "a=\"b\",", "a=\"b\"c=\"d\"", "a=\"b\"} 1", "rank=\"1\"",
        "a=\"b\",id=\"1\"", "size=\"1\"", "reason=\"x\"", ",a=\"b\""})
    EXPECT_NE(whyNoLabels(bad), "") << bad;
  EXPECT_NE(whyNoLabels("a-b=\"c\"").find("'a-b' is no name for a label"), std::string::npos);
}

} // namespace
