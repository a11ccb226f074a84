// Groups of transfers that end later than the call: their requests and callbacks.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

/// Eager; read where it lies.
constexpr uint64_t kSmall = 100, kLarge = 300000;

std::vector<int32_t> numbers(uint64_t count, int32_t first) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

occlRequest_t endAsync(occlComm_t comm) {
  occlRequest_t request = 0;
  EXPECT_EQ(occlGroupEndAsync(comm, 0, nullptr, nullptr, &request), occlSuccess)
      << occlGetLastError();
  EXPECT_NE(request, 0u);
  return request;
}

/// A group of one.
occlRequest_t startSend(const std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
  EXPECT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlSend(values.data(), values.size(), occlInt32, peer, comm, nullptr), occlSuccess);
  return endAsync(comm);
}
occlRequest_t startReceive(std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
  EXPECT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlRecv(values.data(), values.size(), occlInt32, peer, comm, nullptr), occlSuccess);
  return endAsync(comm);
}

/// What its callback was told.
struct Told {
  std::atomic<uint32_t> times{0};
  std::atomic<occlResult_t> result{occlInProgress};
  std::atomic<occlRequest_t> request{0};

  static void tell(occlRequest_t request, occlResult_t result, void *user) {
    auto &told = *static_cast<Told *>(user);
    told.request = request;
    told.result = result;
    ++told.times;
  }
  void await() const {
    while (times == 0)
      std::this_thread::sleep_for(100us);
  }
};

/// Large ones around a ring: nobody receives before it has begun to send.
TEST(TransferAsync, SendsOfARingWaitForNobody) {
  for (uint64_t count : {uint64_t{0}, kSmall, kLarge}) {
    Ranks ranks(3);
    ranks.run([&, count](uint32_t r) {
      for (int32_t round = 0; round < 10; ++round) {
        const auto sent = numbers(count, static_cast<int32_t>(r) + round);
        const occlRequest_t send = startSend(sent, (r + 1) % 3, ranks[r]);
        std::vector<int32_t> got(count, -1);
        const occlRequest_t receive = startReceive(got, (r + 2) % 3, ranks[r]);
        ASSERT_EQ(occlWait(ranks[r], round % 2 ? send : receive), occlSuccess);
        ASSERT_EQ(occlWait(ranks[r], round % 2 ? receive : send), occlSuccess);
        ASSERT_EQ(got, numbers(count, static_cast<int32_t>((r + 2) % 3) + round));
      }
    });
  }
}

TEST(TransferAsync, AGroupEndsWithItsLastTransfer) {
  Ranks ranks(2);
  std::atomic<bool> mayReceive{false};
  ranks.run([&](uint32_t r) {
    const auto sent = numbers(kLarge, 7);
    std::vector<int32_t> got(kLarge, -1), own(kSmall, -1);
    if (r == 1) {
      while (!mayReceive)
        std::this_thread::sleep_for(1ms);
      ASSERT_EQ(occlWait(ranks[1], startReceive(got, 0, ranks[1])), occlSuccess);
      ASSERT_EQ(got, sent);
      return;
    }
    const auto toOneself = numbers(kSmall, 3);
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlSend(sent.data(), kLarge, occlInt32, 1, ranks[0], nullptr), occlSuccess);
    ASSERT_EQ(occlSend(toOneself.data(), kSmall, occlInt32, 0, ranks[0], nullptr), occlSuccess);
    ASSERT_EQ(occlRecv(own.data(), kSmall, occlInt32, 0, ranks[0], nullptr), occlSuccess);
    const occlRequest_t request = endAsync(ranks[0]);
    // What goes to itself is over long before the rest.
    for (int look = 0; look < 50; ++look) {
      ASSERT_EQ(occlTest(ranks[0], request), occlInProgress);
      std::this_thread::sleep_for(1ms);
    }
    mayReceive = true;
    ASSERT_EQ(occlWait(ranks[0], request), occlSuccess);
    ASSERT_EQ(own, toOneself);
    ASSERT_EQ(occlTest(ranks[0], request), occlSuccess); // it is forgotten
  });
}

TEST(TransferAsync, CallbacksAreCalledOnceWithTheRequest) {
  for (uint32_t neverBlocks : {0u, 1u}) {
    Ranks ranks(2);
    ranks.run([&](uint32_t r) {
      for (uint64_t count : {uint64_t{0}, kSmall, kLarge}) {
        Told told;
        const auto sent = numbers(count, 1);
        std::vector<int32_t> got(count, -1);
        ASSERT_EQ(occlGroupStart(), occlSuccess);
        ASSERT_EQ(occlSend(sent.data(), count, occlInt32, 1 - r, ranks[r], nullptr), occlSuccess);
        ASSERT_EQ(occlRecv(got.data(), count, occlInt32, 1 - r, ranks[r], nullptr), occlSuccess);
        occlRequest_t request = 0;
        ASSERT_EQ(occlGroupEndAsync(ranks[r], neverBlocks, Told::tell, &told, &request),
                  occlSuccess);
        if (count != kSmall) { // else the library's threads do it all
          ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
        }
        told.await();
        ASSERT_EQ(got, sent);
        ASSERT_EQ(told.result, occlSuccess);
        ASSERT_EQ(told.request, request);
        std::this_thread::sleep_for(2ms);
        ASSERT_EQ(told.times, 1u);
      }
    });
  }
}

TEST(TransferAsync, AnEmptyGroupIsCompleteAtOnce) {
  Ranks ranks(1);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlTest(ranks[0], endAsync(ranks[0])), occlSuccess);
  Told told;
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(occlGroupEndAsync(ranks[0], 1, Told::tell, &told, nullptr), occlSuccess);
  EXPECT_EQ(told.times, 1u);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  Told later;
  ASSERT_EQ(occlGroupEndAsync(ranks[0], 0, Told::tell, &later, nullptr), occlSuccess);
  later.await();
}

/// A callback that never blocks begins the next group, as a library does that matches messages.
struct Relay {
  occlComm_t comm;
  std::vector<int32_t> &next;
  uint32_t peer;
  Told &last;

  static void goOn(occlRequest_t, occlResult_t result, void *user) {
    const Relay &relay = *static_cast<Relay *>(user);
    if (result != occlSuccess || occlGroupStart() != occlSuccess ||
        occlRecv(relay.next.data(), relay.next.size(), occlInt32, relay.peer, relay.comm,
                 nullptr) != occlSuccess ||
        occlGroupEndAsync(relay.comm, 1, Told::tell, &relay.last, nullptr) != occlSuccess)
      Told::tell(0, occlInternalError, &relay.last);
  }
};

TEST(TransferAsync, ACallbackStartsTheNext) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    for (int32_t round = 0; round < 50; ++round) {
      const auto head = numbers(1, round), body = numbers(kSmall, round);
      if (r == 0) {
        ASSERT_EQ(occlSend(head.data(), 1, occlInt32, 1, ranks[0], nullptr), occlSuccess);
        ASSERT_EQ(occlSend(body.data(), kSmall, occlInt32, 1, ranks[0], nullptr), occlSuccess);
        continue;
      }
      std::vector<int32_t> gotHead(1, -1), gotBody(kSmall, -1);
      Told last;
      Relay relay{ranks[1], gotBody, 0, last};
      ASSERT_EQ(occlGroupStart(), occlSuccess);
      ASSERT_EQ(occlRecv(gotHead.data(), 1, occlInt32, 0, ranks[1], nullptr), occlSuccess);
      ASSERT_EQ(occlGroupEndAsync(ranks[1], 1, Relay::goOn, &relay, nullptr), occlSuccess);
      last.await();
      ASSERT_EQ(last.result, occlSuccess);
      ASSERT_EQ(gotHead, head);
      ASSERT_EQ(gotBody, body);
    }
  });
}

TEST(TransferAsync, AnInvalidCallEndsTheGroup) {
  Ranks ranks(2), others(1);
  const auto sent = numbers(kSmall, 0);
  occlRequest_t request = 0;
  const auto begin = [&](occlComm_t comm) {
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlSend(sent.data(), kSmall, occlInt32, 0, comm, nullptr), occlSuccess);
  };
  const auto expectOver = [&](occlResult_t result, const std::string &said) {
    EXPECT_EQ(result, occlInvalidArgument);
    EXPECT_NE(std::string(occlGetLastError()).find(said), std::string::npos) << occlGetLastError();
    EXPECT_EQ(occlGroupEnd(), occlInvalidArgument) << "a group is left";
  };
  expectOver(occlGroupEndAsync(ranks[0], 0, nullptr, nullptr, &request), "call occlGroupStart");
  begin(others[0]);
  expectOver(occlGroupEndAsync(ranks[0], 0, nullptr, nullptr, &request), "another communicator");
  begin(ranks[0]);
  expectOver(occlGroupEndAsync(ranks[0], 0, nullptr, nullptr, nullptr), "must not both be NULL");
  begin(ranks[0]);
  expectOver(occlGroupEndAsync(ranks[0], 2, nullptr, nullptr, &request), "must be 0 or 1");
  begin(ranks[0]);
  expectOver(occlGroupEndAsync(nullptr, 0, nullptr, nullptr, &request), "must not be NULL");
  begin(ranks[0]);
  EXPECT_EQ(occlSend(sent.data(), kSmall, occlInt32, 2, ranks[0], nullptr), occlInvalidArgument);
  expectOver(occlGroupEndAsync(ranks[0], 0, nullptr, nullptr, &request), "peer is 2");
  // Inside of another one: both are refused.
  begin(ranks[0]);
  begin(ranks[0]);
  EXPECT_EQ(occlGroupEndAsync(ranks[0], 0, nullptr, nullptr, &request), occlInvalidArgument);
  expectOver(occlGroupEnd(), "inside of the group");
  // Nothing of all that was begun: this is the first.
  std::vector<int32_t> got(1, -1);
  const auto first = numbers(1, 42);
  const occlRequest_t receive = startReceive(got, 0, ranks[0]);
  EXPECT_EQ(occlWait(ranks[0], startSend(first, 0, ranks[0])), occlSuccess);
  EXPECT_EQ(occlWait(ranks[0], receive), occlSuccess);
  EXPECT_EQ(got, first);
}

TEST(TransferAsync, AllRequestsTakenIsAgain) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.maxInFlight = 2;
  Ranks ranks(2, config);
  std::atomic<bool> maySend{false};
  ranks.run([&](uint32_t r) {
    std::vector<int32_t> got(kSmall, -1);
    const auto sent = numbers(kSmall, 5);
    if (r == 0) {
      while (!maySend)
        std::this_thread::sleep_for(1ms);
      for (int i = 0; i < 2; ++i)
        ASSERT_EQ(occlSend(sent.data(), kSmall, occlInt32, 1, ranks[0], nullptr), occlSuccess);
      return;
    }
    std::vector<int32_t> second(kSmall, -1);
    const occlRequest_t requests[] = {startReceive(got, 0, ranks[1]),
                                      startReceive(second, 0, ranks[1])};
    occlRequest_t none = 0;
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlRecv(got.data(), kSmall, occlInt32, 0, ranks[1], nullptr), occlSuccess);
    EXPECT_EQ(occlGroupEndAsync(ranks[1], 0, nullptr, nullptr, &none), occlAgain);
    EXPECT_NE(std::string(occlGetLastError()).find("all 2 of config->maxInFlight"),
              std::string::npos)
        << occlGetLastError();
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    EXPECT_EQ(occlStart(ranks[1], &call, nullptr, nullptr, &none), occlAgain);
    EXPECT_NE(std::string(occlGetLastError()).find("all 2 of config->maxInFlight"),
              std::string::npos)
        << occlGetLastError();
    maySend = true;
    EXPECT_EQ(waitForAll(ranks[1], requests), "");
    EXPECT_EQ(got, sent);
    EXPECT_EQ(second, sent);
  });
}

TEST(TransferAsync, AbortEndsRequestsAndCallbacks) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    if (r == 0)
      return;
    std::vector<int32_t> got(kSmall, -1), other(kSmall, -1);
    const occlRequest_t request = startReceive(got, 0, ranks[1]);
    Told told;
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlRecv(other.data(), kSmall, occlInt32, 0, ranks[1], nullptr), occlSuccess);
    ASSERT_EQ(occlSend(got.data(), kSmall, occlInt32, 1, ranks[1], nullptr), occlSuccess);
    ASSERT_EQ(occlGroupEndAsync(ranks[1], 0, Told::tell, &told, nullptr), occlSuccess);
    std::thread aborter([&] {
      std::this_thread::sleep_for(20ms);
      EXPECT_EQ(occlCommAbort(ranks[0]), occlSuccess);
    });
    EXPECT_EQ(occlWait(ranks[1], request), occlAborted);
    told.await();
    EXPECT_EQ(told.result, occlAborted);
    aborter.join();
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlRecv(got.data(), kSmall, occlInt32, 0, ranks[1], nullptr), occlSuccess);
    occlRequest_t late = 0;
    EXPECT_EQ(occlGroupEndAsync(ranks[1], 0, nullptr, nullptr, &late), occlAborted);
  });
}

TEST(TransferAsync, ADeadlineEndsThem) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 100;
  Ranks ranks(2, config);
  std::vector<int32_t> got(kSmall, -1);
  Told told;
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(occlRecv(got.data(), kSmall, occlInt32, 0, ranks[1], nullptr), occlSuccess);
  ASSERT_EQ(occlGroupEndAsync(ranks[1], 0, Told::tell, &told, nullptr), occlSuccess);
  told.await();
  EXPECT_EQ(told.result, occlTimeout);
  EXPECT_NE(std::string(occlCommGetLastError(ranks[1])).find("from rank 0 to rank 1"),
            std::string::npos)
      << occlCommGetLastError(ranks[1]);
}

TEST(TransferAsync, AMismatchEndsBothSides) {
  Ranks ranks(2);
  const auto sent = numbers(kLarge, 0);
  std::vector<int32_t> got(kSmall, -1);
  const occlRequest_t send = startSend(sent, 1, ranks[0]);
  const occlRequest_t receive = startReceive(got, 0, ranks[1]);
  EXPECT_EQ(occlWait(ranks[1], receive), occlMismatch);
  EXPECT_EQ(occlWait(ranks[0], send), occlMismatch);
}

void throwing(occlRequest_t, occlResult_t, void *) { throw std::runtime_error("of the test"); }

TEST(TransferAsync, ACallbackThatThrowsFailsTheCommunicator) {
  Ranks ranks(1);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(occlGroupEndAsync(ranks[0], 1, throwing, nullptr, nullptr), occlSuccess);
  EXPECT_EQ(occlSend(nullptr, 0, occlInt32, 0, ranks[0], nullptr), occlCallbackFailed);
  EXPECT_NE(std::string(occlCommGetLastError(ranks[0]))
                .find("the callback of a group of transfers threw an exception on rank 0"),
            std::string::npos)
      << occlCommGetLastError(ranks[0]);
}

/// What is in flight ends with the communicator: its other side comes, or it is aborted.
TEST(TransferAsync, DestroyWaitsForThem) {
  Told told;
  std::vector<int32_t> got(kSmall, -1);
  {
    Ranks ranks(2);
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    ASSERT_EQ(occlRecv(got.data(), kSmall, occlInt32, 0, ranks[1], nullptr), occlSuccess);
    ASSERT_EQ(occlGroupEndAsync(ranks[1], 0, Told::tell, &told, nullptr), occlSuccess);
    const auto sent = numbers(kSmall, 5);
    ASSERT_EQ(occlSend(sent.data(), kSmall, occlInt32, 1, ranks[0], nullptr), occlSuccess);
    ranks.destroy(1);
    EXPECT_EQ(told.times, 1u);
    EXPECT_EQ(told.result, occlSuccess);
    EXPECT_EQ(got, sent);
  }
}

/// Many in flight at once, in orders of each rank's own between pairs, beside blocking ones.
TEST(TransferAsync, ManyAtATimeInRandomOrders) {
  constexpr uint32_t kRanks = 4, kPerPair = 40;
  const uint64_t seed = printedSeed();
  Ranks ranks(kRanks);
  const auto countOf = [&](uint32_t from, uint32_t to, uint32_t i) -> uint64_t {
    std::mt19937_64 random(seed + (from * kRanks + to) * kPerPair + i);
    return random() % 8 == 0 ? random() % 60000 : random() % 300;
  };
  ranks.run([&](uint32_t r) {
    std::vector<uint32_t> left; // a pair as often as it has transfers: 2 * peer + isSend
    for (uint32_t peer = 0; peer < kRanks; ++peer)
      left.insert(left.end(), kPerPair, 2 * peer), left.insert(left.end(), kPerPair, 2 * peer + 1);
    std::mt19937_64 random(seed ^ r);
    std::shuffle(left.begin(), left.end(), random);
    std::vector<uint32_t> next(2 * kRanks, 0);
    std::deque<std::vector<int32_t>> buffers;
    std::vector<std::pair<std::vector<int32_t> *, std::vector<int32_t>>> expected;
    std::vector<occlRequest_t> requests;
    for (uint32_t pair : left) {
      const uint32_t peer = pair / 2, i = next[pair]++;
      const bool isSend = pair % 2;
      const uint32_t from = isSend ? r : peer, to = isSend ? peer : r;
      const uint64_t count = countOf(from, to, i);
      auto values = numbers(count, static_cast<int32_t>(1000 * from + i));
      if (isSend) {
        requests.push_back(startSend(buffers.emplace_back(std::move(values)), peer, ranks[r]));
        continue;
      }
      auto &got = buffers.emplace_back(count, -1);
      requests.push_back(startReceive(got, peer, ranks[r]));
      expected.emplace_back(&got, std::move(values));
    }
    std::shuffle(requests.begin(), requests.end(), random);
    ASSERT_EQ(waitForAll(ranks[r], requests), "");
    for (const auto &[got, right] : expected)
      ASSERT_EQ(*got, right);
  });
}

} // namespace
} // namespace occl::communicator::testing
