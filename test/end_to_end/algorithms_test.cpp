// Every algorithm at every legal number of ranks, from the plan file on disk: awkward counts, both
// alias modes, all types and operations. The plans are the program's arguments.
#include "test/end_to_end/run_case.h"

#include <filesystem>

namespace occl::test {
namespace {

std::vector<std::string> planFiles;

/// The value that a plan was compiled with, as its file's name has it:
/// "..._ranks5_root3.plan.json".
uint32_t defineIn(const std::string &file, const std::string &name, uint32_t otherwise) {
  std::string stem = std::filesystem::path(file).filename().string();
  size_t begin = stem.rfind("_" + name);
  if (begin == std::string::npos)
    return otherwise;
  return static_cast<uint32_t>(std::stoul(stem.substr(begin + 1 + name.size())));
}

/// The numbers behind "_counts" in a file's name, row by row: "..._counts1_0_3.plan.json".
std::vector<uint32_t> countsIn(const std::string &file) {
  std::string name = std::filesystem::path(file).filename().string();
  std::vector<uint32_t> counts;
  size_t at = name.find("_counts");
  if (at == std::string::npos)
    return counts;
  for (at += std::strlen("_counts"); isdigit(static_cast<unsigned char>(name[at])); ++at) {
    size_t length = 0;
    counts.push_back(static_cast<uint32_t>(std::stoul(name.substr(at), &length)));
    at += length;
  }
  return counts;
}

class Algorithm : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    ASSERT_EQ(occlPlanLoad(GetParam().c_str(), &plan), occlSuccess) << occlGetLastError();
    const char *collective = nullptr;
    ASSERT_EQ(occlPlanQuery(plan, &call.ranks, &collective, nullptr), occlSuccess);
    call.collective = collective;
    call.root = defineIn(GetParam(), "root", defineIn(GetParam(), "source", 0));
    call.target = defineIn(GetParam(), "target", 1);
    call.counts = countsIn(GetParam());
  }
  void TearDown() override { occlPlanDestroy(plan); }

  /// Runs the case twice on one group, so that the second call meets what the first has left
  /// behind.
  void run(ThreadGroup &group, bool inPlace) {
    group.onEachRank([&](uint32_t rank, occlComm_t comm) {
      for (int repetition = 0; repetition < 2; ++repetition) {
        Buffers buffers(call, rank, inPlace);
        ASSERT_EQ(callCase(comm, plan, call, buffers), occlSuccess) << occlGetLastError();
        check(buffers, rank, inPlace);
      }
    });
  }

  void check(const Buffers &buffers, uint32_t rank, bool inPlace) {
    if (call.promisesOutput(rank)) {
      EXPECT_EQ(buffers.received(call, rank), call.output(rank))
          << GetParam() << ": rank " << rank << ", " << call.count << " elements, type "
          << call.type << ", operation " << call.op << (inPlace ? ", in place" : "");
    }
    if (!inPlace) {
      EXPECT_EQ(buffers.sent(), buffers.input) << "the input was changed";
    }
  }

  occlPlan_t plan = nullptr;
  Case call;
};

TEST_P(Algorithm, GivesTheDefinedResultAtAwkwardCounts) {
  ThreadGroup group(call.ranks);
  ASSERT_EQ(group.result, occlSuccess) << occlGetLastError();
  for (uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{call.ranks} - 1, uint64_t{10007}})
    for (bool inPlace : {false, true}) {
      call.count = count;
      if (!inPlace || call.hasInPlace())
        run(group, inPlace);
    }
}

class ReducingAlgorithm : public Algorithm {};

TEST_P(ReducingAlgorithm, ReducesEveryTypeByEveryOperation) {
  ThreadGroup group(call.ranks);
  ASSERT_EQ(group.result, occlSuccess) << occlGetLastError();
  call.count = 333;
  for (int type = occlUint8; type <= occlUint64; ++type)
    for (int op = occlSum; op <= occlAvg; ++op) {
      call.type = static_cast<occlDataType_t>(type);
      call.op = static_cast<occlRedOp_t>(op);
      if (op != occlAvg || call.hasAverage()) {
        run(group, false);
      } else if (call.ranks > 3) { // with fewer, no result goes on to be reduced further
        EXPECT_EQ(callCase(group.comms[0], plan, call, Buffers(call, 0, false)),
                  occlInvalidArgument);
      }
    }
}

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

/// The plans of collectives that reduce, by their names.
std::vector<std::string> reducingPlanFiles() {
  std::vector<std::string> files;
  for (const std::string &file : planFiles)
    for (const char *name : {"reduce", "scan"})
      if (std::filesystem::path(file).filename().string().find(name) != std::string::npos)
        files.push_back(file);
  return files;
}

INSTANTIATE_TEST_SUITE_P(Plans, Algorithm, testing::ValuesIn(planFiles), nameOf);
INSTANTIATE_TEST_SUITE_P(Plans, ReducingAlgorithm, testing::ValuesIn(reducingPlanFiles()), nameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReducingAlgorithm);

} // namespace
} // namespace occl::test

int main(int argc, char **argv) {
  // The plans must be known before gtest instantiates the suite; its own flags all start with a
  // dash.
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] != '-')
      occl::test::planFiles.push_back(argv[i]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
