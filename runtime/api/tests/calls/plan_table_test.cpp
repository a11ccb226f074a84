// OCCL_PLAN_TABLE and OCCL_DEBUG=info, which a process reads at its first collective.
#include "runtime/api/occl_collectives.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void useTable(const std::string &text, const char *name) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  setenv("OCCL_PLAN_TABLE", path.c_str(), 1);
}

/// What the collective returns on two ranks that are threads; false also for wrong sums.
bool sumUp(size_t count, std::string &error) {
  occlComm_t comms[2] = {};
  if (occlCommInitAll(comms, 2, nullptr) != occlSuccess) {
    error = occlGetLastError();
    return false;
  }
  bool isRight[2] = {};
  std::string errors[2];
  const auto rank = [&](int number) {
    std::vector<float> data(count, static_cast<float>(number + 1));
    const auto result = occlAllReduce(data.data(), data.data(), count, occlFloat32, occlSum,
                                      comms[number], nullptr);
    if (result != occlSuccess)
      errors[number] = occlGetLastError();
    isRight[number] = result == occlSuccess && data.front() == 3 && data.back() == 3;
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  for (occlComm_t comm : comms)
    occlCommDestroy(comm);
  error = errors[0];
  return isRight[0] && isRight[1];
}

// Processes of their own, made before this one has chosen any plan.
TEST(PlanTableDeathTest, ATableThatIsWrongIsTheErrorOfCollectives) {
  const auto child = [](const char *text) {
    useTable(text, "wrong.table");
    std::string error;
    const bool isRight = sumUp(10, error);
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(isRight ? 0 : 7);
  };
  EXPECT_EXIT(
      child("OCCL plan table 1\nhost-registered allreduce 2 - nothing 1\n"),
      testing::ExitedWithCode(7),
      "OCCL_PLAN_TABLE: .*wrong.table:2: plan 1 for host-registered allreduce of 2 ranks is "
      "one_shot, not nothing");
  EXPECT_EXIT(child(""), testing::ExitedWithCode(7),
              "OCCL_PLAN_TABLE names '.*wrong.table', which");
}

TEST(PlanTableDeathTest, ATableThatIsAFolderIsNamed) {
  const auto child = [] {
    setenv("OCCL_PLAN_TABLE", testing::TempDir().c_str(), 1);
    std::string error;
    const bool isRight = sumUp(10, error);
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(isRight ? 0 : 7);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(7),
              "OCCL_PLAN_TABLE names '.*', which cannot be read or is empty");
}

TEST(PlanTable, ChangesWhichPlanSmallCallsHaveAndInfoSaysSo) {
  useTable("OCCL plan table 1\nhost-registered allreduce 2 4096 all_pairs 4\n", "right.table");
  setenv("OCCL_DEBUG", "info", 1);
  testing::internal::CaptureStderr();
  std::string error;
  const bool isSmallRight = sumUp(1000, error), isLargerRight = sumUp(4000, error);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(isSmallRight && isLargerRight) << error;
  const size_t small =
      said.find("occl: allreduce of 2 ranks, host-registered: plan 4, all_pairs, "
                "Simple, which " +
                testing::TempDir() + "right.table has for parts of up to 4096 bytes");
  const size_t larger = said.find("occl: allreduce of 2 ranks, host-registered: plan 3, one_shot, "
                                  "Simple, which the library has for parts of up to 65536 bytes");
  EXPECT_NE(small, std::string::npos) << said;
  EXPECT_NE(larger, std::string::npos) << said;
  EXPECT_LT(small, larger);
}

} // namespace
