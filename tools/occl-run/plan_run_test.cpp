// Runs plans from disk on real data by occl-run, in processes and in threads, against its
// reference.
#include "plan/io/writer.h"
#include "plan/testing/example_plans.h"
#include "tools/occl-run/testing.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <thread>

namespace {

using namespace occl::plan::testing;
using occl::run::testing::contains;
using occl::run::testing::occlRun;
using occl::run::testing::Result;

std::string save(const occl::plan::Plan &plan, const std::string &name) {
  std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
  auto status = occl::plan::writePlanFile(plan, path);
  EXPECT_TRUE(status.isOk()) << status.message();
  return path;
}

void expectRight(const std::string &arguments) {
  Result result = occlRun(arguments + " --iterations 3");
  EXPECT_EQ(result.status, 0) << arguments << "\n" << result.output;
  EXPECT_TRUE(contains(result, "check      0 wrong elements")) << arguments << "\n"
                                                               << result.output;
}

TEST(PlanRun, everyCollectiveAsThreadsAndProcesses) {
  const std::vector<std::pair<std::string, occl::plan::Plan>> plans = {
      {"ring", ringAllReduce(4)},
      {"one_shot", oneShotAllReduce(3)},
      {"two_shot", twoShotAllReduce(5)},
      {"broadcast", chainBroadcast(3, 4, 1)},
      {"reduce", chainReduce(3, 4, 2)},
      {"allgather", ringAllGather(3)},
      {"scatter", ringReduceScatter(3)},
      {"alltoall", allToAll(4)},
      {"shift", shift(3)}};
  for (const auto &[name, plan] : plans) {
    std::string path = save(plan, name + ".plan.json");
    expectRight("--plan " + path + " --count 10007 --threads");
    expectRight("--plan " + path + " --count 10007");
    if (plan.inPlace)
      expectRight("--plan " + path + " --count 10007 --threads --in-place");
  }
}

// Here the input lies right behind the output, which is where in place would have it.
TEST(PlanRun, buffersOneBehindTheOther) {
  occl::plan::Plan plan = shift(3);
  plan.inPlace = false;
  for (occl::plan::RankPlan &rank : plan.ranks)
    rank.inPlaceOffset = static_cast<int32_t>(rank.outputChunks);
  std::string path = save(plan, "behind.plan.json");
  for (const char *count : {"1", "3", "1000"})
    expectRight("--threads --plan " + path + " --count " + count);
}

TEST(PlanRun, everyTypeAndOperation) {
  std::string path = save(ringAllReduce(4), "types.plan.json");
  for (const char *type : {"uint8", "int32", "int64", "half", "bfloat16", "float", "double",
                           "float8_e4m3", "float8_e5m2", "int8", "uint32", "uint64"})
    for (const char *operation : {"sum", "prod", "min", "max", "avg"})
      expectRight("--threads --count 1003 --plan " + path + " --type " + type + " --op " +
                  operation);
}

TEST(PlanRun, awkwardCounts) {
  std::string path = save(twoShotAllReduce(4), "counts.plan.cbor");
  for (const char *count : {"0", "1", "3", "5", "127"})
    expectRight("--threads --in-place --plan " + path + " --count " + count);
}

TEST(PlanRun, saysHowFast) {
  Result result = occlRun("--plan " + save(ringAllReduce(2), "fast.plan.json") + " -n 2");
  EXPECT_TRUE(contains(result, "2 ranks as processes")) << result.output;
  EXPECT_TRUE(contains(result, "time       median")) << result.output;
  EXPECT_TRUE(contains(result, " GB/s")) << result.output;
}

TEST(PlanRun, saysThatAPlanPromisesNothing) {
  occl::plan::Plan plan = shift(3);
  plan.collective = "custom";
  plan.requirements.clear();
  plan.contributions.clear();
  plan.hasPostcondition = false;
  Result result = occlRun("--threads --plan " + save(plan, "custom.plan.json"));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(contains(result, "check      nothing: the plan promises no result")) << result.output;
  EXPECT_FALSE(contains(result, "wrong elements")) << result.output;
}

TEST(PlanRun, refusesAPlanForOthers) {
  std::string path = save(ringAllReduce(2), "two.plan.json");
  Result ranks = occlRun("-n 3 --plan " + path);
  EXPECT_EQ(ranks.status, 2);
  EXPECT_TRUE(contains(ranks, "is for 2 ranks, not for 3")) << ranks.output;

  occl::plan::Plan outOfPlace = ringAllReduce(2);
  outOfPlace.inPlace = false;
  Result mode = occlRun("--in-place --plan " + save(outOfPlace, "mode.plan.json"));
  EXPECT_EQ(mode.status, 2);
  EXPECT_TRUE(contains(mode, "is not valid in place")) << mode.output;
}

TEST(PlanRun, refusesWordsThatAreNoOptions) {
  std::string path = save(ringAllReduce(2), "words.plan.json");
  for (const char *words : {"--coutn 5", "--iteratons=3", "true", "-- true"}) {
    Result result = occlRun("--threads --plan " + path + " " + words);
    EXPECT_EQ(result.status, 2) << words << "\n" << result.output;
    EXPECT_TRUE(contains(result, "is no option, and --plan goes without a program")) << words;
    EXPECT_FALSE(contains(result, "bandwidth")) << words << "\n" << result.output;
  }
  EXPECT_TRUE(contains(occlRun("--plan " + path + " --coutn 5"), "'--coutn'"));
  for (const char *words : {"--iterations 0", "--type complex", "--count"})
    EXPECT_EQ(occlRun("--plan " + path + " " + words).status, 2) << words;
  EXPECT_EQ(occlRun("--help").status, 0);
}

TEST(PlanRun, refusesHugeCounts) {
  const std::string arguments = "--plan " + save(ringAllReduce(2), "huge.plan.json") + " --count ";
  for (const char *count : {"-1", "18446744073709551616", "ten"}) {
    Result result = occlRun(arguments + count);
    EXPECT_EQ(result.status, 2) << result.output;
    EXPECT_TRUE(contains(result, std::string("--count: '") + count + "' is no whole number"))
        << result.output;
  }
  for (const char *count : {"18446744073709551615", "4611686018427387904", "288230376151711744"})
    for (const char *how : {"", " --threads", " --no-check", " --type uint8"}) {
      Result result = occlRun(arguments + count + how);
      EXPECT_EQ(result.status, 2) << result.output;
      EXPECT_TRUE(contains(result, std::string("has no buffers for --count ") + count))
          << result.output;
    }
  expectRight(arguments + "010 --threads");
  EXPECT_TRUE(contains(occlRun(arguments + "010"), "data       10 x float")) << "no octal number";
}

// Sanitizers end a process that asks for more than there can be.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PlanRun, saysThatThereIsNoMemory) {
  const std::string path = save(ringAllReduce(2), "memory.plan.json");
  for (const char *how : {"", " --threads"}) {
    Result result = occlRun("--count 1125899906842624 --plan " + path + how);
    EXPECT_EQ(result.status, 1) << result.output;
    EXPECT_TRUE(contains(result, ": no memory for 1125899906842624 elements a part"))
        << result.output;
  }
}
#endif

TEST(PlanRun, refusesDamagedAndWrongPlans) {
  EXPECT_EQ(occlRun("--plan /no/such/file").status, 1);
  std::string path = save(ringAllReduce(3), "cut.plan.json");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_EQ(occlRun("--plan " + path).status, 1);

  occl::plan::Plan wrong = ringAllReduce(3);
  wrong.collective =
      "reduce"; // its verification fails: other ranks than the root change their output
  wrong.instructions.back().count += 1;
  Result result = occlRun("--threads --plan " + save(wrong, "wrong.plan.json"));
  EXPECT_NE(result.status, 0);
  EXPECT_FALSE(contains(result, "wrong elements")) << result.output;
}

TEST(PlanRun, printsStatisticsAndWritesOneTrace) {
  std::string trace = std::string(std::getenv("TEST_TMPDIR")) + "/100%r.json";
  std::string plan = save(oneShotAllReduce(3), "stats.plan.json");
  for (const char *how : {"", " --threads"}) {
    Result result = occlRun("--plan " + plan + " --count 100 --iterations 4 --stats --trace '" +
                            trace + "'" + how);
    EXPECT_EQ(result.status, 0) << result.output;
    for (const char *rank : {"OCCL: rank 0 of 3: ", "OCCL: rank 1 of 3: ", "OCCL: rank 2 of 3: "})
      EXPECT_TRUE(contains(result, rank)) << result.output;
    EXPECT_TRUE(contains(result, "stats.plan.json' (id 1):\n")) << result.output;
    std::ifstream file(trace);
    nlohmann::json events = nlohmann::json::parse(file)["traceEvents"];
    std::map<int, int> instructions;
    for (const auto &event : events)
      instructions[event["pid"]] += event.value("cat", "") == "instruction";
    EXPECT_EQ(instructions, (std::map<int, int>{{0, 8}, {1, 8}, {2, 8}})) << "2 in each iteration";
    EXPECT_FALSE(std::filesystem::exists(trace + ".0.part"));
    std::filesystem::remove(trace);
  }
}

TEST(PlanRun, saysThatNobodyWroteATrace) {
  std::string trace = std::string(std::getenv("TEST_TMPDIR")) + "/none.json";
  Result result = occlRun("-n 1 --trace " + trace + " -- true");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result, "no rank has written a trace")) << result.output;
}

TEST(PlanRun, saysThatTheTraceCannotBeWritten) {
  std::string trace = std::string(std::getenv("TEST_TMPDIR")) + "/missing/job.json";
  std::string started = std::string(std::getenv("TEST_TMPDIR")) + "/started";
  Result result = occlRun("-n 1 --trace " + trace + " -- touch " + started);
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(
      contains(result, "occl-run: cannot write '" + trace + "': No such file or directory [E027]"))
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(started)) << "it is said before anything is started";
}

// Its reader comes, and stays, until the trace is there.
TEST(PlanRun, writesATraceToAPipe) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  const std::string plan = save(ringAllReduce(2), "piped.plan.json"), pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string text;
  std::thread reader([&] {
    std::ifstream file(pipe);
    text.assign(std::istreambuf_iterator<char>(file), {});
  });
  Result result = occlRun("--plan " + plan + " --count 100 --iterations 1 --trace " + pipe);
  reader.join();
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_FALSE(nlohmann::json::parse(text)["traceEvents"].empty());
}

TEST(PlanRun, namesWhatIsNoNumber) {
  for (const char *words : {"--grace 5s", "--seed -1", "--count 1e6"}) {
    Result result = occlRun(std::string("-n 1 ") + words + " true");
    EXPECT_EQ(result.status, 2) << words;
    EXPECT_TRUE(contains(result, "is no whole number")) << result.output;
  }
}

// As of ranks that are killed while they write.
TEST(PlanRun, leavesOutWhatIsNoWholeEvent) {
  const std::string trace = std::string(std::getenv("TEST_TMPDIR")) + "/broken.json";
  const std::string part = trace + ".written";
  const std::string head = "{\"traceEvents\":[\n";
  const std::map<std::string, size_t> wholeEvents = {{head + "{\"pid\":0},\n{\"pid\":0,\"na", 1},
                                                     {head + "{\"pid\":0},\n{\"pid\":1}\n", 2},
                                                     {head + "{\"pid\":0},\n{\"pid\":1},\n", 2},
                                                     {"{\"traceEve", 0},
                                                     {"", 0}};
  for (const auto &[text, number] : wholeEvents) {
    std::ofstream(part) << text;
    Result result =
        occlRun("-n 1 --trace " + trace + " -- sh -c 'cp " + part + " " + trace + ".$RANK.part'");
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_TRUE(contains(result, "the trace of rank 0 breaks off")) << text << result.output;
    std::ifstream file(trace);
    EXPECT_EQ(nlohmann::json::parse(file)["traceEvents"].size(), number) << text;
  }
}

} // namespace
