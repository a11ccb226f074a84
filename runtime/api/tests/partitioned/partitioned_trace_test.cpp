// Traces have the program's marks, beside what executes the epochs.
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <initializer_list>

namespace occl::communicator::testing {
namespace {

using nlohmann::json;

std::string pathOf(const std::string &rank) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/marks." + rank;
}

/// "0: partition 5 ready" for the epochs' numbers in the trace, in the order of the marks.
std::vector<std::string> marksIn(const std::string &path) {
  std::ifstream file(path);
  const json trace = json::parse(file);
  std::vector<std::string> marks;
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == "mark")
      marks.push_back(event["args"]["invocation"].dump() + ": " + event["name"].get<std::string>());
  return marks;
}

/// Some twice, which is an error, and no mark.
void markEight(occlPart_t part) {
  ASSERT_EQ(occlPready(part, 5), occlSuccess) << lastText();
  ASSERT_EQ(occlPready(part, 5), occlInvalidArgument);
  ASSERT_EQ(occlPreadyRange(part, 0, 3), occlSuccess) << lastText();
  const std::vector<int64_t> list = {7, 6, 5, 4};
  ASSERT_EQ(occlPreadyList(part, list.size(), list.data()), occlInvalidArgument);
}

std::vector<std::string> eightMarks(const std::string &epoch) {
  std::vector<std::string> marks;
  for (const char *what :
       {"partition 5", "partitions 0 to 3", "partition 7", "partition 6", "partition 4"})
    marks.push_back(epoch + ": " + what + " ready");
  return marks;
}

TEST(PartitionedTrace, HasTheMarksOfACollective) {
  const Ranks ranks(2);
  std::vector<int32_t> input(64, 1), outputs(128);
  ranks.run([&](uint32_t r) {
    Part part;
    ASSERT_EQ(occlPallReduceInit(input.data(), 8, &outputs[r * 64], 8, 64, occlInt32, occlSum,
                                 ranks[r], nullptr, &part),
              occlSuccess)
        << lastText();
    for (int epoch = 0; epoch < 2; ++epoch) { // the first without a trace
      if (epoch == 1) {
        ASSERT_EQ(occlTraceStart(ranks[r], pathOf("%r").c_str()), occlSuccess) << lastText();
      }
      ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
      markEight(part);
      ASSERT_EQ(occlPwait(part), occlSuccess) << lastText();
    }
    ASSERT_EQ(occlTraceStop(ranks[r]), occlSuccess) << lastText();
    EXPECT_EQ(marksIn(pathOf(std::to_string(r))), eightMarks("1"));
  });
}

TEST(PartitionedTrace, HasTheMarksOfASend) {
  const Ranks ranks(2);
  std::vector<int32_t> from(64, 1), to(64);
  Part send, receive;
  ASSERT_EQ(occlPsendInit(ranks[0], from.data(), 8, 8, occlInt32, 1, 0, nullptr, &send),
            occlSuccess);
  ASSERT_EQ(occlPrecvInit(ranks[1], to.data(), 8, 8, occlInt32, 0, 0, nullptr, &receive),
            occlSuccess);
  ASSERT_EQ(occlTraceStart(ranks[0], pathOf("%r").c_str()), occlSuccess) << lastText();
  for (occlPart_t part : std::initializer_list<occlPart_t>{send, receive})
    ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
  markEight(send);
  for (occlPart_t part : std::initializer_list<occlPart_t>{receive, send})
    ASSERT_EQ(occlPwait(part), occlSuccess) << lastText();
  ASSERT_EQ(occlTraceStop(ranks[0]), occlSuccess) << lastText();
  EXPECT_EQ(marksIn(pathOf("0")), eightMarks("1"));
}

} // namespace
} // namespace occl::communicator::testing
