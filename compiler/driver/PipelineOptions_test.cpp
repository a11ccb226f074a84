#include "compiler/driver/PipelineOptions.h"
#include "compiler/driver/ScheduleOptions.h"

#include <gtest/gtest.h>

namespace occl::driver {
namespace {

/// Of each kind one that is not as usual.
PipelineOptions someOptions() {
  PipelineOptions options;
  options.multicast = false;
  options.reassociate = true;
  options.maxThreadBlocks = 2;
  options.layout = "peers";
  options.spreadLocal = false;
  options.directGroups = {0, 0, 1};
  options.orderThroughRanks = true;
  return options;
}

// Where these texts change, every plan has another hash.
TEST(PipelineOptions, TheTextThatIsHashedStays) {
  EXPECT_EQ(hashedText({}), "true true true 0 64 1 4096 false 0 false  4096 auto 0 false true true "
                            "false");
  EXPECT_EQ(hashedText(someOptions()), "false true true 2 64 1 4096 true 0 true 0,0,1 4096 peers 0 "
                                       "false true true false");
  PipelineOptions options;
  options.weights.emplace();
  EXPECT_EQ(hashedText(options), hashedText({}) + " 3 1 1 1 1 1 7 0");
}

TEST(PipelineOptions, WhereNobodySaysTheHashHasWhatHolds) {
  PipelineOptions spread, said;
  spread.instances = said.instances = 2;
  said.spreadLocal = true;
  said.aggregateLocal = false;
  EXPECT_EQ(hashedText(spread), hashedText(said));
  EXPECT_NE(textOf(spread), textOf(said));
}

TEST(PipelineOptions, TheTextForMlirHasWhatDiffers) {
  EXPECT_EQ(textOf({}), "");
  EXPECT_EQ(textOf(someOptions()), "multicast=false max-thread-blocks=2 reassociate=true "
                                   "direct-groups=0,0,1 layout=peers spread-local=false");
  PipelineOptions options;
  options.weights.emplace().ways.push_back({1, 2, {5, 6}});
  EXPECT_EQ(textOf(options), "weights=3,1,1,1,1,1,7,0,1,2,5,6");
}

TEST(ScheduleOptions, AreTheOptionsOfTheSameNames) {
  EXPECT_EQ(ScheduleOptions::of({}), ScheduleOptions());
  ScheduleOptions schedule = ScheduleOptions().staged();
  schedule.layout = "phases";
  schedule.colors = 3;
  schedule.aggregate = false;
  PipelineOptions options;
  schedule.applyTo(options);
  EXPECT_EQ(ScheduleOptions::of(options), schedule);
  EXPECT_EQ(textOf(options), "multicast=false aggregate=false max-fan-out=1 layout=phases colors=3 "
                             "spread-local=true aggregate-local=false fold-arrivals=false "
                             "share-channels=true");
}

TEST(ScheduleOptions, AreSaidAsOcclcTakesThem) {
  EXPECT_EQ(ScheduleOptions().text(ScheduleOptions()), "");
  ScheduleOptions schedule = ScheduleOptions().staged();
  EXPECT_EQ(schedule.text(ScheduleOptions()),
            "--no-multicast --max-fan-out 1 --spread-local "
            "--no-aggregate-local --no-fold-arrivals --share-channels");
  EXPECT_EQ(ScheduleOptions().text(ScheduleOptions().spread()),
            "--no-spread-local --aggregate-local");
  schedule.aggregate = false; // then no local instructions are joined either
  EXPECT_EQ(schedule.text(ScheduleOptions()),
            "--no-multicast --no-aggregate --max-fan-out 1 --spread-local "
            "--no-fold-arrivals --share-channels");
}

} // namespace
} // namespace occl::driver
