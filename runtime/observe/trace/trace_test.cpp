#include "runtime/observe/trace/trace.h"
#include "runtime/observe/trace/trace_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::insight {
namespace {

TraceEvent eventAt(Ticks begin) {
  return {TraceKind::Wait, 3, 0, 7, begin, begin + 5, 1ull << 63, 9, 11, 13, {15, 17}};
}

/// Of all kinds, with each field alone at its largest, and with all: none reaches into another one.
TEST(TraceEvent, SurvivesItsWords) {
  constexpr uint64_t kMost = ~0ull, kMostDetail = (1ull << 56) - 1;
  const std::vector<void (*)(TraceEvent &)> fill = {
      [](TraceEvent &event) { event.reason = 0xff; },
      [](TraceEvent &event) { event.block = ~0u; },
      [](TraceEvent &event) { event.begin = kMost; },
      [](TraceEvent &event) { event.end = kMost; },
      [](TraceEvent &event) { event.collective = kMost; },
      [](TraceEvent &event) { event.ordinal = kMost; },
      [](TraceEvent &event) { event.instruction = ~0u; },
      [](TraceEvent &event) { event.peer = ~0u; },
      [](TraceEvent &event) { event.detail[0] = kMostDetail; },
      [](TraceEvent &event) { event.detail[1] = kMostDetail; },
  };
  for (auto kind = static_cast<int>(TraceKind::Run); kind <= static_cast<int>(TraceKind::Mark);
       ++kind)
    for (size_t filled = 0; filled <= fill.size(); ++filled) {
      TraceEvent event;
      event.kind = static_cast<TraceKind>(kind);
      for (size_t f = 0; f < fill.size(); ++f)
        if (f == filled || filled == fill.size())
          fill[f](event);
      for (uint32_t session : {1u, 4711u, ~0u}) {
        TraceWords words = encode(event, session);
        EXPECT_EQ(sessionOf(words), session);
        EXPECT_TRUE(decode(words) == event) << "kind " << kind << ", field " << filled;
      }
    }
}

TEST(TraceRing, KeepsTheLast) {
  TraceRing ring(4);
  for (uint64_t i = 0; i < 10; ++i)
    ring.push(encode(eventAt(i), 1));
  std::vector<Ticks> seen;
  ring.forEach([&](const TraceWords &words) { seen.push_back(decode(words).begin); });
  EXPECT_EQ(seen, (std::vector<Ticks>{6, 7, 8, 9}));
}

TEST(TraceRing, ReadersSeeWholeEventsInOrder) {
  TraceRing ring(16);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i)
      ring.push({i, i, i, i, i, i, i, i});
  });
  for (int round = 0; round < 2000; ++round) {
    uint64_t last = 0;
    ring.forEach([&](const TraceWords &words) {
      for (uint64_t word : words)
        ASSERT_EQ(word, words[0]);
      ASSERT_GT(words[0], last);
      last = words[0];
    });
  }
  stop.store(true);
  writer.join();
}

/// Nor their lock, which a thread of its parent may have held.
TEST(Trace, AChildHasNoneOfItsParentsRings) {
  Trace trace;
  ASSERT_TRUE(trace.start());
  trace.record(eventAt(1));
  const pid_t child = fork();
  if (child == 0) {
    trace.record(eventAt(2));
    const auto events = trace.stop().events;
    _exit(events.size() == 1 && events[0].begin == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(trace.stop().events.size(), 1u);
}

TEST(Trace, RecordsBetweenStartAndStop) {
  Trace trace;
  trace.record(eventAt(1));
  EXPECT_FALSE(trace.isOn());
  ASSERT_TRUE(trace.start());
  EXPECT_FALSE(trace.start()) << "it is on";
  EXPECT_TRUE(trace.isOn());
  trace.record(eventAt(3));
  std::thread([&] { trace.record(eventAt(2)); }).join();
  Trace::Recording recording = trace.stop();
  ASSERT_EQ(recording.events.size(), 2u);
  EXPECT_EQ(recording.dropped, 0u);
  EXPECT_EQ(recording.events[0].begin, 2u) << "in order of time, from all threads";
  EXPECT_NE(recording.events[0].executor, recording.events[1].executor);
  EXPECT_TRUE(trace.stop().events.empty());
  ASSERT_TRUE(trace.start());
  EXPECT_TRUE(trace.stop().events.empty()) << "nothing of the session before";
}

TEST(Trace, CountsWhatItDrops) {
  Trace trace, other;
  uint64_t extra = 10, total = traceCapacity() + extra;
  ASSERT_TRUE(trace.start());
  ASSERT_TRUE(other.start());
  other.record(eventAt(1));
  for (uint64_t i = 0; i < total; ++i)
    trace.record(eventAt(i));
  Trace::Recording recording = trace.stop();
  EXPECT_EQ(recording.events.size() + recording.dropped, total);
  EXPECT_EQ(recording.dropped, extra);
  EXPECT_EQ(other.stop().dropped, 1u) << "pushed out by another communicator";
}

} // namespace
} // namespace occl::insight
