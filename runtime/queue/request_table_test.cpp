#include "runtime/queue/request_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace occl::daemon {
namespace {

using Phase = RequestTable::Phase;

/// Counts its calls in *user.
Status count(void (*)(), RequestId, StatusCode result, void *user) {
  ++*static_cast<int *>(user);
  return result == StatusCode::Success ? Status() : Status(StatusCode::CallbackFailed, "thrown");
}

TEST(RequestTable, ARequestIsTakenOnce) {
  RequestTable table(2);
  RequestId request = *table.open({});
  EXPECT_NE(request, 0u);
  EXPECT_EQ(table.phase(request), Phase::InFlight);
  EXPECT_EQ(table.take(request), std::nullopt);
  table.complete(request, StatusCode::Timeout);
  EXPECT_EQ(table.phase(request), Phase::Complete);
  EXPECT_EQ(table.describeFull(), "a request: all 2 of config->maxInFlight are taken, 1 by what is "
                                  "complete and was not waited for");
  EXPECT_EQ(table.take(request), StatusCode::Timeout);
  EXPECT_EQ(table.take(request), std::nullopt);
  EXPECT_EQ(table.phase(request), Phase::Forgotten);
}

TEST(RequestTable, ACallbackRunsOnceAndForgetsItsRequest) {
  RequestTable table(1);
  int calls = 0;
  RequestId request = *table.open({count, nullptr, &calls});
  EXPECT_FALSE(table.open({}).has_value()) << "the only slot is taken";
  table.complete(request, StatusCode::Success);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(table.phase(request), Phase::Complete);
  EXPECT_EQ(table.take(request), StatusCode::Success) << "the result is there before the callback";
  EXPECT_TRUE(table.callBack(RequestTable::slotOf(request)).status.ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(table.phase(request), Phase::Forgotten);
  RequestId next = *table.open({});
  EXPECT_NE(next, request);
  EXPECT_EQ(table.phase(request), Phase::Forgotten);
}

TEST(RequestTable, AnExceptionOfACallbackComesWithItsOrigin) {
  RequestTable table(1);
  int calls = 0;
  RequestId request = *table.open({count, nullptr, &calls}, {7, 3});
  table.complete(request, StatusCode::Timeout);
  RequestTable::CallbackEnd end = table.callBack(RequestTable::slotOf(request));
  EXPECT_EQ(end.status.message(), "thrown");
  EXPECT_EQ(end.origin.collective, 7u);
  EXPECT_EQ(end.origin.ordinal, 3u);
  EXPECT_EQ(table.phase(request), Phase::Forgotten);
}

TEST(RequestTable, UnknownRequestsAreNever) {
  RequestTable table(4);
  EXPECT_EQ(table.phase(0), Phase::Never);
  EXPECT_EQ(table.phase(1), Phase::Never);
  EXPECT_EQ(table.phase(~0ull), Phase::Never);
  RequestId request = *table.open({});
  EXPECT_EQ(table.phase(request + (1ull << 20)), Phase::Never) << "a generation that has not begun";
}

TEST(RequestTable, ACancelledRequestGivesItsSlotBack) {
  RequestTable table(1);
  table.cancel(*table.open({}));
  EXPECT_TRUE(table.open({}).has_value());
}

TEST(RequestTable, ConcurrentTakersShareEachResultOnce) {
  constexpr int kRequests = 1000;
  RequestTable table(8);
  std::atomic<RequestId> current{0};
  std::atomic<int> taken{0};
  std::atomic<bool> stop{false};
  auto take = [&] {
    while (!stop.load()) {
      RequestId request = current.load(std::memory_order_acquire);
      if (request != 0 && table.phase(request) == Phase::Complete && table.take(request))
        taken.fetch_add(1);
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> takers;
  for (int i = 0; i < 2; ++i)
    takers.emplace_back(take);
  for (int i = 0; i < kRequests; ++i) {
    RequestId request = *table.open({});
    current.store(request, std::memory_order_release);
    table.complete(request, StatusCode::Success);
    while (table.phase(request) != Phase::Forgotten)
      std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread &taker : takers)
    taker.join();
  EXPECT_EQ(taken.load(), kRequests);
}

} // namespace
} // namespace occl::daemon
