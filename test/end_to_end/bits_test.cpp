// Options of the compiler change no bit of a result: plans of one program, compiled with different
// options, are run on numbers whose sums are inexact, so that every order of reduction gives
// something else. The first argument is the plan that the others have to agree with.
#include "test/end_to_end/run_case.h"

namespace occl::test {
namespace {

std::vector<std::string> planFiles;

/// Over several orders of magnitude, with both signs.
void fillInexactly(Buffers &buffers, const Case &call, uint32_t rank) {
  for (uint64_t i = 0; i < call.inputElements(rank); ++i) {
    uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u + rank * 0xBF58476D1CE4E5B9u;
    mixed ^= mixed >> 29;
    auto value = static_cast<int64_t>(mixed % 200003) - 100001;
    store(buffers.send + i * sizeOf(call.type), call.type, value, 7 + (mixed >> 40) % 1000);
  }
}

/// What each rank's output holds after one call; with an error for what the plan does not allow.
std::vector<Bytes> outputsOf(const std::string &file, Case &call, bool inPlace) {
  occlPlan_t plan = nullptr;
  EXPECT_EQ(occlPlanLoad(file.c_str(), &plan), occlSuccess) << occlGetLastError();
  const char *collective = nullptr;
  EXPECT_EQ(occlPlanQuery(plan, &call.ranks, &collective, nullptr), occlSuccess);
  call.collective = collective;
  std::vector<Bytes> outputs(call.ranks);
  {
    ThreadGroup group(call.ranks);
    EXPECT_EQ(group.result, occlSuccess) << occlGetLastError();
    group.onEachRank([&](uint32_t rank, occlComm_t comm) {
      Buffers buffers(call, rank, inPlace);
      fillInexactly(buffers, call, rank);
      EXPECT_EQ(callCase(comm, plan, call, buffers), occlSuccess) << occlGetLastError();
      if (call.promisesOutput(rank))
        outputs[rank] = buffers.received(call, rank);
    });
  }
  occlPlanDestroy(plan);
  return outputs;
}

// A count that the chunks divide but not their pieces, one that nothing divides, a few elements.
TEST(Bits, DoNotDependOnOptions) {
  ASSERT_GT(planFiles.size(), 1u);
  for (uint64_t count : {uint64_t{1000}, uint64_t{10007}, uint64_t{9}})
    for (occlDataType_t type : {occlFloat32, occlFloat16, occlBfloat16})
      for (bool inPlace : {false, true}) {
        Case call;
        call.count = count;
        call.type = type;
        std::vector<Bytes> expected = outputsOf(planFiles[0], call, inPlace);
        for (size_t i = 1; i < planFiles.size(); ++i)
          EXPECT_EQ(outputsOf(planFiles[i], call, inPlace), expected)
              << planFiles[i] << ": " << count << " elements, type " << type
              << (inPlace ? ", in place" : "");
      }
}

} // namespace
} // namespace occl::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  occl::test::planFiles.assign(argv + 1, argv + argc);
  return RUN_ALL_TESTS();
}
