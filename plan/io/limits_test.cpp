// Each limit, at the limit and one above it: limits lowered to what an example has, as plans at the
// real ones would take gigabytes. The reader refuses early, the verifier whatever was built in
// memory.
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "plan/verify/verifier.h"

#include <fstream>
#include <gtest/gtest.h>

namespace occl::plan {
namespace {

struct Case {
  uint64_t Limits::*field;
  Plan (*make)();
  uint64_t has; // what the example has of it
  const char
      *readerWords; // of the error one below that; empty if the reader leaves it to the verifier
  const char *verifierWords;
};

Plan twoShot() { return testing::twoShotAllReduce(4); }
Plan shift() { return testing::shift(3, 4); }

Plan witnessed() {
  Plan plan = testing::chainBroadcast(2, 2);
  plan.witnesses = {{0, 2}, {2, 2}};
  plan.places = {{0, 0, 0}, {0, 0, 1}, {0, 0, 0}, {0, 0, 1}};
  return plan;
}

const Case kCases[] = {
    {&Limits::ranks, twoShot, 4, "at ranks[3]: more than 3 ranks",
     "numRanks is 4, allowed are 1 to 3"},
    {&Limits::chunks, twoShot, 4, "", "partChunks is 4, allowed are 1 to 3"},
    {&Limits::threadBlocks, twoShot, 4, "at ranks[0].threadBlocks[3]: more than 3 thread blocks",
     "rank 0: 4 thread blocks, allowed are 3"},
    {&Limits::instructions, twoShot, 32,
     "at ranks[3].threadBlocks[3][2]: more than 31 instructions",
     "the number of instructions is 32, allowed are 0 to 31"},
    {&Limits::operands, twoShot, 5, "at ranks[0].threadBlocks[1][0].dst[0]: more than 4 operands",
     "it has 5 operands and 0 dependencies, allowed are 4 and 1024"},
    {&Limits::dependencies, twoShot, 1,
     "at ranks[0].threadBlocks[2][0].after[0]: more than 0 dependencies",
     "it has 2 operands and 1 dependencies, allowed are 4096 and 0"},
    {&Limits::connections, twoShot, 16, "at connections[15]: more than 15 connections",
     "the number of connections is 16, allowed are 0 to 15"},
    {&Limits::channels, twoShot, 2, "", "connection 12: the channel is 1, allowed are 0 to 0"},
    {&Limits::depth, twoShot, 2, "", "depth is 2, allowed are 1 to 1"},
    {&Limits::nameLength, twoShot, 23, "at files[0]: the text has 23 bytes; at most 22 are allowed",
     "the length of a name is 23, allowed are 1 to 22"},
    {&Limits::parameters, twoShot, 1, "at parameters.ranks: more than 0 parameters",
     "the number of parameters is 1, allowed are 0 to 0"},
    {&Limits::files, twoShot, 1, "at files[0]: more than 0 files",
     "the number of files is 1, allowed are 0 to 0"},
    {&Limits::locations, twoShot, 4, "at locations[3]: more than 3 locations",
     "the number of locations is 4, allowed are 0 to 3"},
    {&Limits::requirements, shift, 2, "at requirements[1]: more than 1 requirements",
     "the number of requirements is 2, allowed are 0 to 1"},
    {&Limits::witnesses, witnessed, 2, "at witnesses[1]: more than 1 witnesses",
     "the number of witnesses is 2, allowed are 0 to 1"},
    {&Limits::totalPlaces, witnessed, 4, "at witnesses[1][1]: more than 3 places of witnesses",
     "the number of places of witnesses is 4, allowed are 0 to 3"},
    {&Limits::totalOperands, twoShot, 76,
     "at ranks[3].threadBlocks[3][2].dst[0]: more than 75 operands in all",
     "the number of operands is 76, allowed are 0 to 75"},
    {&Limits::totalDependencies, twoShot, 16,
     "at ranks[3].threadBlocks[3][2].after[0]: more than 15 dependencies in all",
     "the number of dependencies is 16, allowed are 0 to 15"},
    {&Limits::totalDestinations, twoShot, 24,
     "at connections[15][2][2]: more than 23 destinations in all",
     "the number of destinations is 24, allowed are 0 to 23"},
    {&Limits::totalContributions, shift, 2, "at requirements[1][3][0]: more than 1 contributions",
     "the number of contributions is 2, allowed are 0 to 1"},
    {&Limits::totalThreadBlocks, twoShot, 16,
     "at ranks[3].threadBlocks[3]: more than 15 thread blocks in all",
     "the number of thread blocks is 16, allowed are 0 to 15"},
    {&Limits::totalChunks, twoShot, 32, "",
     "the number of chunks of all buffers is 32, allowed are 0 to 31"},
    {&Limits::chunkAccesses, twoShot, 76, "", "up to here the plan accesses more than 75 chunks"},
};

TEST(Limits, AtEachAndOneAbove) {
  for (const Case &one : kCases) {
    Plan plan = one.make();
    Limits limits;
    limits.*one.field = one.has;
    for (Format format : {Format::Json, Format::Cbor}) {
      support::Expected<Plan> read = readPlan(encodePlan(plan, format), "plan", limits);
      EXPECT_TRUE(read) << read.message();
    }
    VerifyResult result = verifyPlan(plan, {.limits = limits});
    EXPECT_TRUE(result) << result.text();

    limits.*one.field = one.has - 1;
    support::Expected<Plan> read = readPlan(encodePlan(plan, Format::Json), "plan", limits);
    std::string words = one.readerWords;
    EXPECT_EQ(read.message().substr(0, read.message().rfind(" [E35")),
              words.empty() ? "" : "plan: " + words);
    result = verifyPlan(plan, {.limits = limits});
    ASSERT_TRUE(result.error) << one.verifierWords;
    EXPECT_EQ(result.error->message, one.verifierWords);
  }
}

TEST(Limits, AllAreTested) {
  for (const LimitInfo &info : kLimits) {
    bool isTested = info.field == &Limits::fileBytes; // OfBytesOfAFile
    for (const Case &one : kCases)
      isTested = isTested || one.field == info.field;
    EXPECT_TRUE(isTested) << info.text;
  }
}

TEST(Limits, OfBytesOfAFile) {
  std::string bytes = encodePlan(shift(), Format::Json);
  std::string path = ::testing::TempDir() + "/limit.plan.json";
  std::ofstream(path, std::ios::binary) << bytes;
  Limits limits;
  limits.fileBytes = bytes.size();
  EXPECT_TRUE(readPlanFile(path, limits)) << readPlanFile(path, limits).message();
  limits.fileBytes = bytes.size() - 1;
  EXPECT_EQ(readPlanFile(path, limits).message(), path + ": the file has more than " +
                                                      std::to_string(bytes.size() - 1) +
                                                      " bytes or cannot be read [E350]");
}

TEST(Limits, OfChunksThatRequirementsName) {
  Limits limits;
  limits.chunkAccesses = 7;
  EXPECT_EQ(verifyPlan(shift(), {.limits = limits}).error->message,
            "the number of chunks that requirements name is 8, allowed are 0 to 7");
  limits.chunkAccesses = 8;
  EXPECT_EQ(verifyPlan(shift(), {.limits = limits}).error->message,
            "up to here the plan accesses more than 8 chunks");
}

TEST(Limits, OfPairsThatAreCompared) {
  // Two ranks: one loadReduceStore each, of one chunk, 2 sources and 1 or 2 destinations.
  Plan plan = testing::directAllReduce(2);
  uint64_t work = 0;
  for (const Instruction &instruction : plan.instructions) {
    uint64_t operands = uint64_t{instruction.numSources} + instruction.numDestinations;
    if (instruction.opcode == Opcode::LoadReduceStore)
      work += operands * (instruction.count + instruction.numDestinations);
  }
  EXPECT_TRUE(verifyPlan(plan, {.limits = {.chunkAccesses = work}}));
  EXPECT_EQ(verifyPlan(plan, {.limits = {.chunkAccesses = work - 1}}).error->message,
            "up to here the plan accesses more than " + std::to_string(work - 1) + " chunks");
}

} // namespace
} // namespace occl::plan
