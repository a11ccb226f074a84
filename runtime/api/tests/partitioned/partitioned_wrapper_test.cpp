// occl_partitioned.hpp: requests that free themselves, errors as exceptions.
#include "runtime/api/occl_partitioned.hpp"
#include "runtime/api/testing/communicators.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace occl::communicator::testing {
namespace {

static_assert(!std::is_copy_constructible_v<Partitioned>);
static_assert(std::is_nothrow_move_constructible_v<Partitioned>);

bool has(const std::string &text, const char *part) { return text.find(part) != text.npos; }

TEST(PartitionedWrapper, SendsAndReceives) {
  onRanks(2, [](Communicator &comm, uint32_t r) {
    std::vector<int32_t> values(48);
    Partitioned request = r == 0
                              ? psend<int32_t>(comm, values, 16, 1, 3, {.partitionsPerMessage = 2})
                              : precv<int32_t>(comm, values, 4, 0, 3);
    for (int32_t epoch = 0; epoch < 3; ++epoch) {
      request.start();
      if (r == 0) {
        std::iota(values.begin(), values.end(), 100 * epoch);
        request.readyRange(8, 15);
        request.ready({3, 1});
        request.ready(0);
        request.ready(std::array<int64_t, 5>{2, 4, 5, 6, 7});
        while (!request.test())
          std::this_thread::yield();
        continue;
      }
      request.prepare();
      for (int64_t q = 0; q < 4; ++q) {
        while (!request.arrived(q))
          std::this_thread::yield();
        EXPECT_EQ(values[static_cast<size_t>(12 * q)], 100 * epoch + 12 * q);
      }
      request.wait();
    }
  });
}

TEST(PartitionedWrapper, Collectives) {
  onRanks(3, [](Communicator &comm, uint32_t r) {
    std::vector<double> values(24), sums(24), all(72);
    Partitioned sum = pallReduce<double>(comm, values, 6, sums, 4);
    Partitioned gather = pcall<double>(comm, {.kind = occlKindAllGather, .count = 24}, values, 3,
                                       all, 9, {.rounds = 1});
    EXPECT_EQ(gather.info().rounds, 1u);
    EXPECT_EQ(gather.info().arrivesEarly, 0);
    for (int epoch = 1; epoch < 4; ++epoch) {
      std::fill(values.begin(), values.end(), epoch * (r + 1));
      (r == 0 ? sum : gather).start();
      (r == 0 ? gather : sum).start();
      sum.readyRange(0, 5);
      gather.readyRange(0, 2);
      gather.wait();
      sum.wait();
      EXPECT_EQ(sums, std::vector<double>(24, 6 * epoch));
      EXPECT_EQ(all.back(), 3 * epoch);
    }
  });
}

/// The end of its scope waits for the receiver, which comes late.
TEST(PartitionedWrapper, WaitsWhenItIsDestroyed) {
  onRanks(2, [](Communicator &comm, uint32_t r) {
    std::vector<float> values(8, 1.0F);
    if (r == 0) {
      {
        Partitioned made = psend<float>(comm, values, 4, 1);
        Partitioned send = std::move(made);
        EXPECT_EQ(made.handle(), nullptr);
        send.start();
        send.readyRange(0, 3);
      }
      std::fill(values.begin(), values.end(), -1.0F);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<float> got(8);
    Partitioned receive = precv<float>(comm, got, 2, 0);
    receive.start();
    receive.wait();
    EXPECT_EQ(got, std::vector<float>(8, 1.0F));
  });
}

/// Nobody marks the rest: the others are told, and nobody waits.
TEST(PartitionedWrapper, AbortsIfAnExceptionDestroysIt) {
  onRanks(2, [](Communicator &comm, uint32_t r) {
    std::vector<float> values(8);
    if (r == 0) {
      EXPECT_THROW(
          {
            Partitioned send = psend<float>(comm, values, 4, 1);
            send.start();
            send.ready(0);
            throw std::runtime_error("of the program");
          },
          std::runtime_error);
      EXPECT_NE(comm.failure(), "");
      return;
    }
    try {
      Partitioned receive = precv<float>(comm, values, 4, 0);
      receive.start();
      receive.wait();
      ADD_FAILURE() << "the sender has not marked all";
    } catch (const Error &error) {
      EXPECT_EQ(error.result(), occlAborted);
    }
  });
}

/// Without an epoch there is nothing that nobody would mark: the communicator goes on.
TEST(PartitionedWrapper, LivesOnIfAnExceptionDestroysAnIdleOne) {
  std::vector<Communicator> ranks = Communicator::all(1);
  Communicator &comm = ranks[0];
  std::vector<int32_t> from{1, 2, 3, 4}, to(4);
  const auto run = [&](bool isTested) {
    Partitioned made = psend<int32_t>(comm, from, 2, 0);
    Partitioned receive = precv<int32_t>(comm, to, 2, 0);
    made.start();
    Partitioned send = std::move(made);
    receive.start();
    send.ready({0, 1});
    receive.wait();
    while (isTested && !send.test())
      std::this_thread::yield();
    if (!isTested)
      send.wait();
    Partitioned fresh = psend<int32_t>(comm, from, 2, 0, 1);
    throw std::runtime_error("of the program");
  };
  for (const bool isTested : {false, true, false}) {
    std::fill(to.begin(), to.end(), 0);
    EXPECT_THROW(run(isTested), std::runtime_error);
    EXPECT_EQ(comm.failure(), "");
    EXPECT_EQ(from, to);
  }
}

/// Also the one that is replaced is waited for and freed.
TEST(PartitionedWrapper, IsAssigned) {
  std::vector<Communicator> ranks = Communicator::all(1);
  std::vector<int64_t> from{1, 2, 3, 4}, to(4);
  Partitioned send = psend<int64_t>(ranks[0], from, 2, 0, 1);
  send = psend<int64_t>(ranks[0], from, 4, 0, 2);
  Partitioned receive = precv<int64_t>(ranks[0], to, 1, 0, 2);
  send.start();
  receive.start();
  send.readyRange(0, 3);
  receive.wait();
  send.wait();
  EXPECT_EQ(from, to);
}

TEST(PartitionedWrapper, RefusesWhatDoesNotFit) {
  std::vector<Communicator> ranks = Communicator::all(1);
  const Communicator &comm = ranks[0];
  std::vector<int32_t> values(10), fewer(9);
  EXPECT_TRUE(has(whatOf([&] { psend<int32_t>(comm, values, 3, 0); }),
                  "psend: 10 elements are no 3 partitions"));
  EXPECT_TRUE(has(whatOf([&] { precv<int32_t>(comm, values, 0, 0); }), "precv: 10 elements"));
  EXPECT_TRUE(has(whatOf([&] { precv<int32_t>(comm, values, -1, 0); }), "are no -1 partitions"));
  EXPECT_TRUE(has(whatOf([&] { psend<int32_t>(comm, values, 5, 7); }), "there is no rank 7"));
  EXPECT_TRUE(has(whatOf([&] { psend<int32_t>(comm, values, 5, 0, -1); }), "tag is -1"));
  EXPECT_TRUE(has(whatOf([&] { pallReduce<int32_t>(comm, values, 5, fewer, 5); }),
                  "receive has 9 elements, it needs 10"));
  Partitioned send = psend<int32_t>(comm, values, 5, 0);
  EXPECT_TRUE(has(whatOf([&] { send.ready(0); }), "has not been started"));
  EXPECT_TRUE(has(whatOf([&] { (void)send.arrived(0); }), "only partitions of a receive"));
}

} // namespace
} // namespace occl::communicator::testing
