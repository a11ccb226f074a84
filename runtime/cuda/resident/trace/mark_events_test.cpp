#include "runtime/cuda/resident/trace/mark_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using insight::TraceEvent;
using insight::TraceKind;

namespace {

constexpr uint64_t kMilli = 1'000'000;

TEST(DeviceClock, GoesAtTheRateBetweenItsSamples) {
  // 2.5 ticks to a nanosecond, measured, though 2 are said.
  DeviceClock clock({.device = 100 * kMilli, .host = 7'000'000'000},
                    {.device = 300 * kMilli, .host = 7'500'000'000}, 2);
  EXPECT_EQ(clock.hostAt(100 * kMilli), 7'000'000'000u);
  EXPECT_EQ(clock.hostAt(200 * kMilli), 7'250'000'000u);
  EXPECT_EQ(clock.hostAt(300 * kMilli), 7'500'000'000u);
  EXPECT_EQ(clock.hostAt(300 * kMilli + 4), 7'500'000'010u);
}

TEST(DeviceClock, OfSamplesThatAreCloseTakesTheNominalRate) {
  DeviceClock clock({.device = 1000, .host = 50'000}, {.device = 2000, .host = 59'000}, 2);
  EXPECT_EQ(clock.hostAt(2000), 59'000u);
  EXPECT_EQ(clock.hostAt(2500), 60'000u);
  EXPECT_EQ(clock.hostAt(0), 55'000u);
}

TEST(DeviceClock, TimesMayLackTheirUpperBits) {
  constexpr uint64_t kTurn = kMarkTime + 1;
  DeviceClock clock({.device = 5 * kTurn - 100 * kMilli, .host = 1'000'000'000},
                    {.device = 100 * kMilli, .host = 1'200'000'000}, 3);
  EXPECT_EQ(clock.hostAt(kTurn - 50 * kMilli), 1'050'000'000u);
  EXPECT_EQ(clock.hostAt(50 * kMilli), 1'150'000'000u);
}

TEST(DeviceClock, NominalRateIsThatOfTheTickScale) {
  const double perNanosecond = nominalTicksPerNanosecond();
  EXPECT_NEAR(static_cast<double>(TickScale().nanoseconds(1'000'000)) * perNanosecond, 1e6, 1e4);
}

TEST(Marks, SurviveTheirEncoding) {
  const MarkView mark = {.time = (1ull << 60) + 12345,
                         .moment = Moment::Completed,
                         .flag = true,
                         .block = 63,
                         .sequence = 0xfedcba98,
                         .instruction = 77,
                         .cycles = 0xdeadbeef,
                         .detail = 0x0123456789abcdef};
  const MarkView again = decode(encode(mark));
  EXPECT_EQ(again.time, 12345u) << "the lower 48 bits";
  EXPECT_EQ(again.moment, mark.moment);
  EXPECT_TRUE(again.flag);
  EXPECT_EQ(again.block, mark.block);
  EXPECT_EQ(again.sequence, mark.sequence);
  EXPECT_EQ(again.instruction, mark.instruction);
  EXPECT_EQ(again.cycles, mark.cycles);
  EXPECT_EQ(again.detail, mark.detail);
}

/// Host ticks are 1,000,000 more than nanoseconds of the device.
class Events : public testing::Test {
protected:
  static constexpr Ticks kOffset = 1'000'000;
  static constexpr uint64_t kSequence = (7ull << 32) + 3;
  static constexpr uint32_t kLow = 3;
  static constexpr uint64_t kWaitForData =
      uint64_t(interpreter::BlockReason::Data) << 56 | uint64_t(5) << 32 | 9;

  void add(uint32_t executor, uint64_t time, Moment moment, uint32_t block = 2, uint64_t detail = 0,
           bool flag = false, uint32_t instruction = 0) {
    marks.resize(std::max<size_t>(marks.size(), executor + 1));
    marks[executor].push_back({.time = time,
                               .moment = moment,
                               .flag = flag,
                               .block = block,
                               .sequence = kLow,
                               .instruction = instruction,
                               .detail = detail});
  }
  void convert() {
    const TracedRequest request = {
        kSequence, {42, 6}, kOffset + 50, kOffset + 2000, StatusCode::Success};
    events = eventsOf(marks, {&request, 1}, DeviceClock({0, kOffset}, {0, kOffset}, 1), 1,
                      insight::deviceExecutor(2, 0));
  }
  std::vector<TraceEvent> of(TraceKind kind) const {
    std::vector<TraceEvent> found;
    for (const TraceEvent &event : events) {
      EXPECT_EQ(event.collective, 42u);
      EXPECT_EQ(event.ordinal, 6u);
      EXPECT_LE(event.begin, event.end);
      if (event.kind == kind)
        found.push_back(event);
    }
    return found;
  }

  std::vector<std::vector<MarkView>> marks;
  std::vector<TraceEvent> events;
};

TEST_F(Events, AVisitThatIsLeftAndOneByAnotherExecutor) {
  add(0, 100, Moment::TakenIn, 0);
  add(0, 110, Moment::Visit, 2, 4);
  add(0, 120, Moment::Ready);
  add(0, 150, Moment::Stepped, 2, 25, false, 1);
  add(0, 160, Moment::Blocked, 2, kWaitForData, false, 3);
  add(0, 200, Moment::Left, 2, 0, true);
  add(1, 300, Moment::Visit, 2, 1, true);
  add(1, 310, Moment::Blocked, 2, kWaitForData, false, 3);
  add(1, 400, Moment::Stepped, 2, 40, false, 3);
  add(1, 410, Moment::Finished);
  add(1, 430, Moment::Visible);
  add(1, 440, Moment::Completed);
  convert();

  auto visits = of(TraceKind::Visit);
  ASSERT_EQ(visits.size(), 2u);
  EXPECT_EQ(visits[0].begin, kOffset + 110);
  EXPECT_EQ(visits[0].end, kOffset + 200);
  EXPECT_EQ(visits[0].executor, insight::deviceExecutor(2, 0));
  EXPECT_EQ(visits[0].block, 2u);
  EXPECT_EQ(visits[0].detail[1], 4u) << "tasks to choose from";
  EXPECT_EQ(visits[1].executor, insight::deviceExecutor(2, 1));
  EXPECT_EQ(visits[1].end, kOffset + 410);

  auto runs = of(TraceKind::Run);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].begin, kOffset + 125);
  EXPECT_EQ(runs[0].end, kOffset + 150);
  EXPECT_EQ(runs[0].instruction, 1u);
  EXPECT_EQ(runs[1].begin, kOffset + 360);

  auto waits = of(TraceKind::Wait);
  ASSERT_EQ(waits.size(), 1u) << "one wait, whoever looked";
  EXPECT_EQ(waits[0].begin, kOffset + 160);
  EXPECT_EQ(waits[0].end, kOffset + 360);
  EXPECT_EQ(waits[0].peer, 5u);
  EXPECT_EQ(waits[0].instruction, 3u);
  EXPECT_EQ(waits[0].reason, static_cast<uint8_t>(transport::WaitReason::Data));

  auto moment = [&](TraceKind kind) {
    auto found = of(kind);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? 0 : found[0].begin - kOffset;
  };
  EXPECT_EQ(moment(TraceKind::Submit), 50u);
  EXPECT_EQ(moment(TraceKind::Start), 100u);
  EXPECT_EQ(moment(TraceKind::Preempt), 200u);
  EXPECT_EQ(moment(TraceKind::Announced), 300u);
  EXPECT_EQ(moment(TraceKind::Finish), 440u);
  EXPECT_EQ(moment(TraceKind::Complete), 2000u);
  EXPECT_TRUE(std::ranges::is_sorted(events, {}, &TraceEvent::begin));
}

TEST_F(Events, ARunDoesNotReachIntoWhatTheExecutorDidBefore) {
  add(0, 100, Moment::Visit);
  add(0, 130, Moment::Blocked, 2, kWaitForData);
  add(0, 150, Moment::Stepped, 2, 24);
  add(0, 160, Moment::Finished);
  convert();
  ASSERT_EQ(of(TraceKind::Run).size(), 1u);
  EXPECT_EQ(of(TraceKind::Run)[0].begin, kOffset + 130);
  ASSERT_EQ(of(TraceKind::Wait).size(), 1u);
  EXPECT_EQ(of(TraceKind::Wait)[0].end, kOffset + 130);
}

TEST_F(Events, AWaitForAnotherThreadBlockIsForTheOwnRank) {
  add(0, 100, Moment::Visit);
  add(0, 130, Moment::Blocked, 2, uint64_t(interpreter::BlockReason::Dependency) << 56 | 4);
  add(0, 200, Moment::Left);
  convert();
  ASSERT_EQ(of(TraceKind::Wait).size(), 1u) << "it goes on, as far as is known";
  EXPECT_EQ(of(TraceKind::Wait)[0].peer, 1u);
  EXPECT_EQ(of(TraceKind::Wait)[0].reason, static_cast<uint8_t>(transport::WaitReason::Dependency));
  EXPECT_TRUE(of(TraceKind::Preempt).empty()) << "nothing else was open";
}

TEST_F(Events, OthersSubmissionsAndTornVisitsAreLeftOut) {
  // The ring has lost the begin of the first visit.
  add(0, 90, Moment::Stepped, 2, 10);
  add(0, 100, Moment::Finished);
  marks[0].push_back({.time = 110, .moment = Moment::TakenIn, .sequence = kLow + 1});
  marks[0].push_back({.time = 120, .moment = Moment::Visit, .sequence = kLow + 1});
  marks[0].push_back({.time = 125, .moment = Moment::Begun, .sequence = kLow});
  marks[0].push_back({.time = 130, .moment = Moment::Finished, .sequence = kLow + 1});
  convert();
  EXPECT_TRUE(of(TraceKind::Visit).empty());
  EXPECT_EQ(of(TraceKind::Run).size(), 1u);
  EXPECT_TRUE(of(TraceKind::Start).empty());
}

} // namespace
