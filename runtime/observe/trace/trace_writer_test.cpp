#include "runtime/observe/trace/trace_writer.h"

#include "plan/model/trace_names.h"
#include "plan/testing/example_plans.h"
#include "runtime/control/records/wait_edges.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace occl::insight {
namespace {

using nlohmann::json;

KnownCollective lookUp(uint64_t collective) {
  if (collective != 7)
    return {"id " + std::to_string(collective), nullptr};
  return {"'sum' (id 7)", std::make_shared<const plan::Plan>(plan::testing::oneShotAllReduce(2))};
}

json written(const Trace::Recording &recording) {
  std::ostringstream text;
  writeTrace(text, {1, 2}, recording, lookUp);
  return json::parse(text.str());
}

std::vector<json> eventsOf(const json &trace, const std::string &category) {
  std::vector<json> events;
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == category)
      events.push_back(event);
  return events;
}

std::string threadName(const json &trace, const json &event) {
  for (const json &other : trace["traceEvents"])
    if (other["name"] == "thread_name" && other["tid"] == event["tid"])
      return other["args"]["name"];
  return "";
}

TraceEvent event(TraceKind kind, uint64_t collective, Ticks begin, Ticks end) {
  TraceEvent event;
  event.kind = kind;
  event.collective = collective;
  event.begin = begin;
  event.end = end;
  return event;
}

TEST(TraceWriter, NamesInstructionsAndWaitsAsThePredictedTraceDoes) {
  Ticks now = ticks();
  Trace::Recording recording;
  TraceEvent wait = event(TraceKind::Wait, 7, now, now + 1000);
  wait.reason = static_cast<uint8_t>(transport::WaitReason::Data);
  wait.instruction = 1;
  recording.events = {wait, event(TraceKind::Run, 7, now + 1000, now + 5000)};
  json trace = written(recording);
  EXPECT_EQ(trace["otherData"]["rank"], 1);
  EXPECT_EQ(trace["otherData"]["dropped"], 0);
  auto waits = eventsOf(trace, plan::trace::kWait),
       runs = eventsOf(trace, plan::trace::kInstruction);
  ASSERT_EQ(waits.size(), 1u);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(waits[0]["name"], "wait: a message");
  EXPECT_EQ(runs[0]["name"], "send");
  EXPECT_EQ(runs[0]["pid"], 1);
  EXPECT_EQ(runs[0]["tid"], 0);
  EXPECT_EQ(threadName(trace, runs[0]), "thread block 0");
  EXPECT_EQ(runs[0]["args"]["invocation"], 0);
  EXPECT_FALSE(runs[0]["args"]["does"].get<std::string>().empty());
  EXPECT_NEAR(waits[0]["ts"].get<double>() + waits[0]["dur"].get<double>(),
              runs[0]["ts"].get<double>(), 0.002);
}

TEST(TraceWriter, AMessageHasOneNameOnBothSides) {
  // Instruction 0 of one_shot sends to the other rank, instruction 1 receives.
  Ticks now = ticks();
  Trace::Recording recording;
  recording.events = {event(TraceKind::Run, 7, now, now + 4000),
                      event(TraceKind::Run, 7, now + 4000, now + 5000)};
  recording.events[0].ordinal = recording.events[1].ordinal = 3;
  recording.events[1].instruction = 1;
  std::vector<std::string> sent, received;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::ostringstream text;
    writeTrace(text, {rank, 2}, recording, lookUp);
    const json trace = json::parse(text.str());
    for (size_t i = 0; i < trace["traceEvents"].size(); ++i) {
      const json &flow = trace["traceEvents"][i];
      if (flow["ph"] != "s" && flow["ph"] != "f")
        continue;
      EXPECT_EQ(trace["traceEvents"][i - 1]["ph"], "X") << "behind its event";
      EXPECT_EQ(trace["traceEvents"][i - 1]["tid"], flow["tid"]);
      (flow["ph"] == "s" ? sent : received).push_back(flow["id"]);
    }
  }
  ASSERT_EQ(sent.size(), 2u);
  std::ranges::sort(sent);
  std::ranges::sort(received);
  EXPECT_EQ(sent, received);
  EXPECT_NE(sent[0], sent[1]);

  for (TraceEvent &later : recording.events)
    later.detail[1] = 1;
  EXPECT_TRUE(eventsOf(written(recording), plan::trace::kFlow).empty())
      << "of its first slice only";
}

TEST(TraceWriter, BlocksOfDifferentCollectivesHaveThreadsOfTheirOwn) {
  Ticks now = ticks();
  Trace::Recording recording;
  recording.events = {event(TraceKind::Run, 7, now, now + 10),
                      event(TraceKind::Run, 9, now + 5, now + 20)};
  recording.events[1].block = 2;
  recording.dropped = 5;
  json trace = written(recording);
  auto runs = eventsOf(trace, plan::trace::kInstruction);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(threadName(trace, runs[0]), "thread block 0 of 'sum' (id 7)");
  EXPECT_EQ(threadName(trace, runs[1]), "thread block 2 of id 9");
  EXPECT_EQ(runs[1]["name"], "run") << "its plan is not known any more";
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank 1 (5 earlier events dropped)");
}

TEST(TraceWriter, TimesCountFromTheOrigin) {
  TickScale scale;
  Ticks now = ticks();
  Trace::Recording recording;
  recording.events = {event(TraceKind::Submit, 7, now - 1'000'000'000, now - 1'000'000'000),
                      event(TraceKind::Finish, 7, now + 1'000'000, now + 1'000'000)};
  std::ostringstream text;
  writeTrace(text, {0, 2, scale.timeOf(now)}, recording, lookUp);
  auto moments = eventsOf(json::parse(text.str()), "request");
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_EQ(moments[0]["ts"], 0.0) << "what was before is at 0";
  EXPECT_NEAR(moments[1]["ts"].get<double>(),
              static_cast<double>(scale.nanoseconds(1'000'000)) / 1e3, 1);
}

TEST(TraceWriter, ExecutorsAndRequests) {
  Ticks now = ticks();
  Trace::Recording recording;
  TraceEvent visit = event(TraceKind::Visit, 7, now, now + 100);
  visit.executor = 6;
  visit.detail = {2, 5};
  TraceEvent callback = event(TraceKind::Callback, 7, now + 200, now + 300);
  callback.executor = 3;
  TraceEvent start = event(TraceKind::Start, 7, now, now);
  start.detail = {4, 0};
  recording.events = {event(TraceKind::Submit, 7, now, now),
                      start,
                      visit,
                      visit,
                      callback,
                      event(TraceKind::Preempt, 7, now, now),
                      event(TraceKind::Complete, 7, now, now)};
  json trace = written(recording);
  auto visits = eventsOf(trace, "visit"), callbacks = eventsOf(trace, "callback"),
       moments = eventsOf(trace, "request");
  ASSERT_EQ(visits.size(), 2u);
  EXPECT_EQ(threadName(trace, visits[0]), "thread 1");
  EXPECT_EQ(visits[0]["args"]["position"], 2);
  EXPECT_EQ(visits[0]["args"]["queueLength"], 5);
  ASSERT_EQ(callbacks.size(), 1u);
  EXPECT_EQ(threadName(trace, callbacks[0]), "thread 0");
  ASSERT_EQ(moments.size(), 4u);
  EXPECT_EQ(moments[0]["name"], "submitted");
  EXPECT_EQ(moments[1]["args"]["queueLength"], 4);
  EXPECT_EQ(threadName(trace, moments[0]), "requests");
  EXPECT_EQ(threadName(trace, moments[2]), "thread block 0") << "a preemption is the block's";
  size_t lengths = 0;
  for (const json &counted : trace["traceEvents"])
    lengths += counted["ph"] == "C";
  EXPECT_EQ(lengths, 1u) << "only when it changes";
}

TEST(TraceWriter, Marks) {
  const Ticks now = ticks();
  Trace::Recording recording;
  TraceEvent one = event(TraceKind::Mark, 7, now, now), several = one;
  one.detail = {3, 1};
  several.detail = {4, 5};
  recording.events = {one, several};
  const json trace = written(recording);
  const auto marks = eventsOf(trace, plan::trace::kMark);
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks[0]["name"], "partition 3 ready");
  EXPECT_EQ(marks[1]["name"], "partitions 4 to 8 ready");
  EXPECT_EQ(threadName(trace, marks[0]), "requests");
  EXPECT_TRUE(eventsOf(trace, plan::trace::kRequest).empty());
}

TEST(TraceWriter, ExecutorsOfDevicesComeAfterThoseOfTheHost) {
  Ticks now = ticks();
  Trace::Recording recording;
  TraceEvent visit = event(TraceKind::Visit, 7, now, now + 100);
  visit.executor = deviceExecutor(2, 5);
  TraceEvent callback = event(TraceKind::Callback, 7, now + 200, now + 300);
  callback.executor = 3;
  recording.events = {visit, callback};
  json trace = written(recording);
  EXPECT_EQ(threadName(trace, eventsOf(trace, "visit").at(0)), "executor 5 of device daemon 2");
  EXPECT_EQ(threadName(trace, eventsOf(trace, "callback").at(0)), "thread 0");
  EXPECT_LT(eventsOf(trace, "callback").at(0)["tid"], eventsOf(trace, "visit").at(0)["tid"]);
}

} // namespace
} // namespace occl::insight
