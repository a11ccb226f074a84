// The queues, the request table and the announce records under all small schedules.
#include "runtime/control/records/announce_table.h"
#include "runtime/control/records/failure_word.h"
#include "runtime/control/records/wait_edges.h"
#include "runtime/queue/bounded_ring.h"
#include "runtime/queue/completion_queue.h"
#include "runtime/queue/request_table.h"
#include "runtime/queue/submission_queue.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/light_mutex.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace occl::explore {
namespace {

constexpr uint64_t kMostSchedules = 15000;

/// Under all schedules with few preemptions, as far as they go, and under random ones.
void expectNoDefect(const std::function<void()> &body) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 2;
  settings.schedules = kMostSchedules;
  EXPECT_EQ(explore(settings, body).defect, "");
  settings.strategy = Settings::Strategy::Random;
  settings.schedules = 2000;
  EXPECT_EQ(explore(settings, body).defect, "");
}

/// What several consumers have got: each entry once, and those of one consumer in order.
void checkShared(const std::vector<std::vector<uint64_t>> &got, uint64_t numEntries) {
  std::vector<uint64_t> all;
  for (const auto &entries : got) {
    require(std::is_sorted(entries.begin(), entries.end()), "entries overtake each other");
    all.insert(all.end(), entries.begin(), entries.end());
  }
  std::sort(all.begin(), all.end());
  for (uint64_t i = 0; i < numEntries; ++i)
    require(all.size() == numEntries && all[i] == i, "an entry is lost or doubled");
}

TEST(SubmissionQueue, OneProducerTwoConsumersInTurnAndARingOfTwo) {
  expectNoDefect([] {
    constexpr uint64_t kEntries = 4;
    queue::SubmissionQueue<uint64_t> queue(2);
    std::vector<std::vector<uint64_t>> got(2);
    Atomic<uint32_t> left{kEntries};
    Mutex consuming;
    auto pop = [&] {
      std::lock_guard lock(consuming);
      return queue.pop();
    };
    auto consume = [&](uint32_t consumer) {
      while (left.load(std::memory_order_acquire) != 0)
        if (auto entry = pop()) {
          got[consumer].push_back(*entry);
          left.fetch_sub(1, std::memory_order_acq_rel);
        } else {
          yieldProcessor();
        }
    };
    Thread first(consume, 0), second(consume, 1);
    for (uint64_t i = 0; i < kEntries; ++i)
      while (!queue.push(i))
        yieldProcessor();
    first.join();
    second.join();
    checkShared(got, kEntries);
  });
}

TEST(BoundedRing, TwoProducersWhoDrainWhatTheyPush) {
  expectNoDefect([] {
    queue::BoundedRing<uint64_t> queue(4);
    std::vector<std::vector<uint64_t>> got(2);
    auto produce = [&](uint32_t producer) {
      require(queue.push(producer), "a queue with room refuses");
      while (auto entry = queue.pop())
        got[producer].push_back(*entry);
    };
    Thread first(produce, 0), second(produce, 1);
    first.join();
    second.join();
    std::vector<uint64_t> all = got[0];
    all.insert(all.end(), got[1].begin(), got[1].end());
    std::sort(all.begin(), all.end());
    require(all == std::vector<uint64_t>({0, 1}), "an entry is left behind, lost or doubled");
  });
}

/// As free slots are used: there are as many entries as slots, and who has popped one pushes it
/// back.
TEST(BoundedRing, APoppedElementFindsRoomWhileAnotherIsBeingPopped) {
  expectNoDefect([] {
    queue::BoundedRing<uint64_t> queue(2);
    require(queue.push(0) && queue.push(1), "a queue with room refuses");
    auto use = [&] {
      for (int i = 0; i < 2; ++i)
        if (auto entry = queue.pop())
          require(queue.push(*entry), "a queue with room refuses");
    };
    Thread first(use), second(use);
    first.join();
    second.join();
    auto one = queue.pop(), other = queue.pop();
    require(one && other && *one + *other == 1 && !queue.pop(), "an entry is lost or doubled");
  });
}

/// Two producers, each of whom sees to it that somebody pops: whoever gets to be the consumer. A
/// queue that has room for all entries must take each at once, as the daemon relies on.
void shareConsumer(queue::CompletionForm form, uint32_t capacity) {
  constexpr uint32_t kEach = 2;
  auto queue = queue::makeCompletionQueue(form, capacity);
  std::vector<uint64_t> got;
  Mutex consumer;
  auto produce = [&](uint32_t producer) {
    for (uint32_t i = 0; i < kEach; ++i) {
      while (!queue->push(1 + producer * kEach + i)) {
        require(capacity < 2 * kEach, "a queue with room refuses");
        yieldProcessor();
      }
      std::lock_guard lock(consumer);
      while (auto entry = queue->pop())
        got.push_back(*entry - 1);
    }
  };
  Thread first(produce, 0), second(produce, 1);
  first.join();
  second.join();
  std::sort(got.begin(), got.end());
  checkShared({got}, 2 * kEach);
}

void shareBothSizes(queue::CompletionForm form) {
  expectNoDefect([form] { shareConsumer(form, 2); });
  expectNoDefect([form] { shareConsumer(form, 4); });
}

TEST(CompletionQueue, Ring) { shareBothSizes(queue::CompletionForm::Ring); }
TEST(CompletionQueue, PackedRing) { shareBothSizes(queue::CompletionForm::PackedRing); }
TEST(CompletionQueue, Slots) { shareBothSizes(queue::CompletionForm::Slots); }

TEST(FutexMutex, OneOfThreeAtATimeAndNobodySleepsOn) {
  expectNoDefect([] {
    FutexMutex mutex;
    Atomic<uint32_t> inside{0};
    uint32_t entered = 0; // plain, as what a lock is for
    auto enter = [&] {
      std::lock_guard lock(mutex);
      require(inside.fetch_add(1, std::memory_order_relaxed) == 0, "two have the lock");
      ++entered;
      inside.fetch_sub(1, std::memory_order_relaxed);
    };
    Thread first(enter), second(enter);
    enter();
    first.join();
    second.join();
    require(entered == 3, "one has written over what another wrote");
  });
}

TEST(OwnResult, WritesBeforeAResultAreSeenByItsTaker) {
  expectNoDefect([] {
    daemon::OwnResult own;
    uint32_t output = 0; // plain, as a buffer of a call
    for (uint32_t call = 1; call <= 2; ++call) {
      own.expect();
      Thread executor([&] {
        output = call;
        own.set(StatusCode::Success);
      });
      while (!own.isThere())
        yieldProcessor();
      require(own.take() == StatusCode::Success && output == call, "an output of another call");
      require(own.isNobodys(), "it can be taken twice");
      executor.join();
    }
  });
}

TEST(RequestTable, OneCompletesTwoTake) {
  expectNoDefect([] {
    daemon::RequestTable table(2);
    daemon::RequestId request = *table.open({});
    Atomic<uint32_t> taken{0};
    auto take = [&] {
      while (table.phase(request) == daemon::RequestTable::Phase::InFlight)
        yieldProcessor();
      if (auto result = table.take(request)) {
        require(*result == StatusCode::Aborted, "the result is not what it was completed with");
        taken.fetch_add(1);
      }
    };
    Thread first(take), second(take);
    table.complete(request, StatusCode::Aborted);
    first.join();
    second.join();
    require(taken.load() == 1, "a result is taken once");
    // Its slot and the other one are free again, each once.
    require(table.open({}) && table.open({}) && !table.open({}), "a slot is lost or doubled");
  });
}

TEST(RequestTable, SlotsAreUsedAgainByTwo) {
  expectNoDefect([] {
    daemon::RequestTable table(1);
    auto use = [&](StatusCode result) {
      for (int round = 0; round < 3; ++round) {
        std::optional<daemon::RequestId> request;
        while (!(request = table.open({})))
          yieldProcessor();
        require(table.phase(*request) == daemon::RequestTable::Phase::InFlight, "it is not open");
        if (round == 0) {
          table.cancel(*request);
          continue;
        }
        table.complete(*request, result);
        require(table.take(*request) == result, "another one's result");
      }
    };
    Thread first(use, StatusCode::Aborted), second(use, StatusCode::Timeout);
    first.join();
    second.join();
  });
}

TEST(Announce, ARecordIsSeenWholeAndInItsTurn) {
  expectNoDefect([] {
    auto cell = std::make_unique<transport::AnnounceCell>();
    constexpr uint64_t kInvocations = 10; // more than records
    Atomic<uint64_t> read{0};
    Thread reader([&] {
      for (uint64_t ordinal = 0; ordinal < kInvocations; ++ordinal) {
        const transport::AnnounceRecord *record;
        while (!(record = cell->find(ordinal)))
          yieldProcessor();
        const transport::Announcement said = record->read();
        require(said.arenaOffset == ordinal * 64 && said.traits.count == ordinal,
                "a record is read before it is whole");
        read.store(ordinal + 1, std::memory_order_release);
      }
    });
    for (uint64_t ordinal = 0; ordinal < kInvocations; ++ordinal) {
      while (ordinal >= read.load(std::memory_order_acquire) + transport::AnnounceCell::kRecords)
        yieldProcessor();
      transport::CollectiveTraits traits;
      traits.count = ordinal;
      cell->publish(ordinal, ordinal * 64, traits);
    }
    reader.join();
  });
}

/// One collective stays while another, which was there before it, goes: where both belong to the
/// same place of the index, the number of what stays moves up. For some of these ids they do.
TEST(Announce, AnEntryThatStaysIsFoundWhileAnotherGoes) {
  constexpr uint64_t kStays = 7, kNever = 9;
  struct alignas(64) Memory {
    transport::AnnounceCell cells[2];
    std::byte index[transport::AnnounceTable::indexBytes(2)] = {};
  };
  for (uint64_t goes = 0; goes < 7; ++goes)
    expectNoDefect([goes] {
      auto memory = std::make_unique<Memory>();
      transport::AnnounceTable table(memory->cells, memory->index);
      transport::AnnounceOwner owner(table);
      auto *leaving = owner.take(goes), *stays = owner.take(kStays);
      Thread reader([&] {
        for (int i = 0; i < 2; ++i) {
          auto life = table.lifeOf(kStays);
          require(!life || life->phase == transport::CellPhase::Active, "what stays is not found");
          const transport::AnnounceCell *found = table.find(kStays);
          require(!found || found == stays, "another cell is found");
          life = table.lifeOf(kNever);
          require(!life || life->phase == transport::CellPhase::Vacant, "what never was is found");
        }
      });
      owner.giveBack(*leaving);
      owner.take(goes + 10);
      reader.join();
    });
}

TEST(FailureCause, TheFirstCauseCountsAndIsReadWhole) {
  expectNoDefect([] {
    transport::FailureCause word;
    auto write = [&](StatusCode code, const char *text) { word.writeCause({code, text}); };
    Thread first(write, StatusCode::Timeout, "late"), second(write, StatusCode::Aborted, "aborted");
    Status seen = word.readCause();
    require(seen.ok() ||
                seen.message() == (seen.code() == StatusCode::Timeout ? "late" : "aborted"),
            "text and code of two causes are mixed");
    first.join();
    second.join();
    require(!word.readCause().ok(), "a cause is lost");
  });
}

TEST(WaitEdges, ASnapshotIsOfOnePublication) {
  expectNoDefect([] {
    auto board = std::make_unique<transport::WaitEdgeBoard>();
    Thread reader([&] {
      for (int i = 0; i < 3; ++i) {
        transport::WaitSnapshot snapshot = board->read();
        for (const transport::WaitEdge &edge : snapshot.edges)
          require(edge.collective == snapshot.edges.size() && edge.peer == edge.collective,
                  "a snapshot mixes two publications");
      }
    });
    for (uint32_t edges : {1u, 2u}) {
      transport::WaitEdge edge;
      edge.collective = edge.peer = edges;
      board->publish(std::vector<transport::WaitEdge>(edges, edge));
    }
    board->clear();
    reader.join();
  });
}

} // namespace
} // namespace occl::explore
