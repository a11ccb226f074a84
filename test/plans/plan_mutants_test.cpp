// Plans of all algorithms, at several numbers of thread blocks: each dependency is needed, and
// changed plans get the right verdict. Oracles that share no code with the verifier but the list of
// standard collectives check both.
//
//   plan_mutants_test <occlc> <folder of the algorithms>
//
// OCCL_TEST_MUTANTS: mutants of each plan (default 200); OCCL_TEST_SEED: the seed.
#include "plan/io/reader.h"
#include "plan/testing/mutants.h"
#include "plan/testing/parts.h"
#include "plan/testing/replay.h"
#include "plan/verify/verifier.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>

namespace occl::plan {
namespace {

std::string compiler, folder;

struct Case {
  const char *algorithm;
  const char *defines;
};

constexpr Case kCases[] = {
    {"allgather/all_pairs", "-D ranks=4"},
    {"allgather/bruck", "-D ranks=5"},
    {"allgather/recursive_doubling", "-D ranks=4"},
    {"allgather/ring", "-D ranks=5"},
    {"allreduce/all_pairs", "-D ranks=4"},
    {"allreduce/double_binary_tree", "-D ranks=5"},
    {"allreduce/hierarchical", "-D nodes=2 -D gpus=3"},
    {"allreduce/nv_group", "-D nodes=2 -D gpus=3"},
    {"allreduce/one_shot", "-D ranks=4"},
    {"allreduce/recursive_halving_doubling", "-D ranks=4"},
    {"allreduce/ring", "-D ranks=5"},
    {"allreduce/two_level", "-D nodes=2 -D gpus=3"},
    {"alltoall/all_pairs", "-D ranks=4"},
    {"alltoall/three_step", "-D nodes=2 -D gpus=3"},
    {"alltoall/two_step", "-D nodes=2 -D gpus=3"},
    {"alltonext/all_nics", "-D nodes=3 -D gpus=2"},
    {"alltonext/direct", "-D ranks=4"},
    {"broadcast/all_pairs", "-D ranks=4"},
    {"broadcast/chain", "-D ranks=4"},
    {"broadcast/tree", "-D ranks=5 -D root=3"},
    {"gather/direct", "-D ranks=5 -D root=3"},
    {"gather/tree", "-D ranks=5 -D root=3"},
    {"reduce/all_pairs", "-D ranks=4"},
    {"reduce/chain", "-D ranks=4"},
    {"reduce/tree", "-D ranks=5 -D root=3"},
    {"reducescatter/all_pairs", "-D ranks=4"},
    {"reducescatter/ring", "-D ranks=5"},
    {"scatter/direct", "-D ranks=5 -D root=3"},
    {"scatter/tree", "-D ranks=5 -D root=3"},
    {"sendrecv/direct", "-D ranks=5 -D source=3 -D target=1"},
};

unsigned long fromEnvironment(const char *name, unsigned long otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoul(text, nullptr, 10) : otherwise;
}

class CompiledPlans : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override { std::cout << "seed " << seed << "\n"; }

  /// The algorithm's plan for at most so many thread blocks a rank.
  Plan compile(unsigned threadBlocks, const std::string &options = "") {
    std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/mutants.plan.cbor";
    std::string command = compiler + " compile " + folder + "/" + GetParam().algorithm + ".coll " +
                          GetParam().defines + " --max-thread-blocks " +
                          std::to_string(threadBlocks) + options + " -o " + path;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    support::Expected<Plan> plan = readPlanFile(path);
    EXPECT_TRUE(plan) << plan.message();
    return plan ? std::move(*plan) : Plan();
  }

  /// Without any one of its dependencies the plan is rejected, for a reason that can be shown.
  void expectAllNeeded(const Plan &plan) {
    testing::Blocks blocks = testing::takeApart(plan);
    for (auto &rank : blocks)
      for (auto &block : rank)
        for (testing::Step &step : block)
          for (size_t d = 0; d < step.dependencies.size(); ++d) {
            std::vector<Dependency> all = step.dependencies;
            step.dependencies.erase(step.dependencies.begin() + static_cast<ptrdiff_t>(d));
            Plan mutant = testing::putTogether(plan, blocks);
            step.dependencies = all;
            VerifyResult result = verifyPlan(mutant, {.findSmallestDepth = false});
            ASSERT_TRUE(result.error) << "not needed: thread block " << all[d].threadBlock
                                      << ", instruction " << all[d].instruction;
            EXPECT_EQ(testing::replay(mutant, *result.error, random), "") << result.text();
          }
  }

  void expectRightWithAllNeeded(unsigned threadBlocks, const std::string &options) {
    SCOPED_TRACE(std::to_string(threadBlocks) + " thread blocks" + options);
    Plan plan = compile(threadBlocks, options);
    EXPECT_EQ(testing::confirm(plan, 5, random), "");
    // What accesses peers' buffers is ordered by signals, of which no witness tells.
    VerifyFacts facts = verifyPlan(plan).facts;
    EXPECT_EQ(facts.signals == 0 ? facts.searchedOrders : 0, 0u) << "the witnesses do not show all";
    expectAllNeeded(plan);
  }

  uint32_t seed = static_cast<uint32_t>(fromEnvironment("OCCL_TEST_SEED", 20261120));
  std::mt19937 random{seed};
};

TEST_P(CompiledPlans, NeedEveryDependency) {
  for (unsigned threadBlocks : {1, 2, 4, 8})
    for (const char *options : {"", " --order-through-ranks"})
      expectRightWithAllNeeded(threadBlocks, options);
}

TEST_P(CompiledPlans, NeedEveryDependencyWithOtherOptions) {
  for (const char *options :
       {" --direct", " --direct-groups 2 --order-through-ranks", " --instances 2 --no-multicast",
        " --layout phases --spread-local --no-fold-arrivals --max-fan-out 1",
        " --no-fuse --no-aggregate --layout peers --order-through-ranks"})
    expectRightWithAllNeeded(4, options);
}

TEST_P(CompiledPlans, MutantsGetTheRightVerdict) {
  std::map<std::string, int> verdicts;
  const unsigned long number = fromEnvironment("OCCL_TEST_MUTANTS", 200);
  for (const Plan &plan : {compile(1), compile(4), compile(2, " --direct")})
    for (unsigned long i = 0; i < number; ++i) {
      Plan mutant = plan;
      std::string what = testing::mutate(mutant, random);
      VerifyResult result = verifyPlan(mutant, {.findSmallestDepth = false});
      std::string doubt = result ? testing::confirm(mutant, 10, random)
                                 : testing::replay(mutant, *result.error, random);
      EXPECT_EQ(doubt, "") << what << "\n" << result.text();
      ++verdicts[result ? "accepted" : nameOf(result.error->code)];
    }
  for (const auto &[verdict, times] : verdicts)
    std::cout << verdict << ": " << times << "\n";
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CompiledPlans, ::testing::ValuesIn(kCases), [](auto &info) {
  std::string name = info.param.algorithm;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

} // namespace
} // namespace occl::plan

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " <occlc> <folder of the algorithms>\n";
    return 2;
  }
  occl::plan::compiler = argv[1];
  occl::plan::folder = argv[2];
  return RUN_ALL_TESTS();
}
