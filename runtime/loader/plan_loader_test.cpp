#include "runtime/loader/plan_loader.h"

#include "plan/io/writer.h"
#include "plan/model/hash.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

namespace occl::loader {
namespace {

class PlanLoader : public testing::Test {
protected:
  void write(const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  void TearDown() override { std::remove(path.c_str()); }

  std::string path = testing::TempDir() + "plan_loader_test_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".plan";
};

TEST_F(PlanLoader, LoadsBothFormats) {
  plan::Plan plan = plan::testing::ringAllReduce(3);
  for (std::string bytes :
       {plan::encodePlan(plan, plan::Format::Json), plan::encodePlan(plan, plan::Format::Cbor)}) {
    write(bytes);
    auto loaded = loadPlan(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ((*loaded)->plan.numRanks, 3u);
    EXPECT_EQ((*loaded)->hash, plan::hashPlan(plan));
  }
}

TEST_F(PlanLoader, SharesAPlanInUseAmongThreads) {
  write(plan::encodePlan(plan::testing::twoShotAllReduce(4), plan::Format::Json));
  std::vector<LoadedPlanPtr> plans(4);
  std::vector<std::thread> threads;
  for (LoadedPlanPtr &plan : plans)
    threads.emplace_back([&] {
      if (auto loaded = loadPlan(path); loaded.ok())
        plan = *loaded;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const LoadedPlanPtr &plan : plans)
    EXPECT_EQ(plan, plans[0]);
  EXPECT_NE(plans[0], nullptr);
}

TEST_F(PlanLoader, LoadsAChangedFileAgain) {
  write(plan::encodePlan(plan::testing::ringAllReduce(3), plan::Format::Json));
  auto before = loadPlan(path);
  write(plan::encodePlan(plan::testing::ringAllReduce(5), plan::Format::Json));
  auto after = loadPlan(path);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*before)->plan.numRanks, 3u);
  EXPECT_EQ((*after)->plan.numRanks, 5u);
}

TEST_F(PlanLoader, SaysThatThereIsNoFile) {
  auto loaded = loadPlan(path);
  EXPECT_EQ(loaded.status().code(), StatusCode::SystemError);
  EXPECT_NE(loaded.status().message().find(path), std::string::npos);
}

TEST_F(PlanLoader, RejectsWhatIsNoPlan) {
  write("{\"schemaVersion\": 1");
  EXPECT_EQ(loadPlan(path).status().code(), StatusCode::InvalidPlan);
}

TEST_F(PlanLoader, RejectsAPlanThatComputesSomethingElse) {
  plan::Plan plan = plan::testing::ringAllReduce(3);
  plan.collective = "broadcast";
  write(plan::encodePlan(plan, plan::Format::Cbor));
  auto loaded = loadPlan(path);
  EXPECT_EQ(loaded.status().code(), StatusCode::InvalidPlan);
  EXPECT_NE(loaded.status().message().find(path), std::string::npos);
}

} // namespace
} // namespace occl::loader
