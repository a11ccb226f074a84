// occl_transfer.hpp: sends, receives, groups and collectives with counts by rank.
#include "runtime/api/occl_transfer.hpp"
#include "runtime/api/testing/communicators.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 3;

template <class T> std::vector<T> numbers(uint64_t count, uint32_t first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), static_cast<T>(first));
  return values;
}

TEST(TransferWrapper, SendsAndReceives) {
  onRanks(kRanks, [](Communicator &comm, uint32_t r) {
    if (r == 0)
      send<double>(comm, numbers<double>(100, 5), 2);
    if (r != 2)
      return;
    std::vector<double> got(100);
    receive<double>(comm, got, 0);
    EXPECT_EQ(got, numbers<double>(100, 5));
  });
}

TEST(TransferWrapper, GroupsOfAnyNesting) {
  onRanks(kRanks, [](Communicator &comm, uint32_t r) {
    const uint32_t next = (r + 1) % kRanks, last = (r + kRanks - 1) % kRanks;
    const auto mine = numbers<int32_t>(100000, r);
    std::vector<int32_t> theirs(mine.size());
    group([&] {
      send<int32_t>(comm, mine, next);
      group([&] { receive<int32_t>(comm, theirs, last); });
    });
    EXPECT_EQ(theirs, numbers<int32_t>(100000, last));
    std::vector<int32_t> again(mine.size());
    Request request = groupAsync(comm, [&] {
      send<int32_t>(comm, mine, next);
      receive<int32_t>(comm, again, last);
    });
    request.wait();
    EXPECT_EQ(again, theirs);
  });
}

TEST(TransferWrapper, AGroupThatThrowsIsNotBegun) {
  onRanks(kRanks, [](Communicator &comm, uint32_t r) {
    const auto wrong = numbers<int32_t>(1, 1), right = numbers<int32_t>(1, 2);
    EXPECT_THROW(group([&] {
                   send<int32_t>(comm, wrong, r);
                   throw std::runtime_error("of the test");
                 }),
                 std::runtime_error);
    EXPECT_NE(whatOf([&] {
                group([&] {
                  send<int32_t>(comm, wrong, r);
                  send<int32_t>(comm, wrong, kRanks);
                });
              }).find("peer is 3"),
              std::string::npos);
    EXPECT_THROW(groupAsync(comm, [&] { send<int32_t>(comm, wrong, kRanks); }), Error);
    std::vector<int32_t> got(1);
    group([&] {
      send<int32_t>(comm, right, r);
      receive<int32_t>(comm, got, r);
    });
    EXPECT_EQ(got, right);
  });
}

/// Rank q has 10 * q + r elements for rank r.
TEST(TransferWrapper, CollectivesWithCountsByRank) {
  onRanks(kRanks, [](Communicator &comm, uint32_t r) {
    std::vector<uint64_t> toOthers, fromOthers, ofRanks;
    std::vector<int64_t> expected, gathered;
    for (uint32_t q = 0; q < kRanks; ++q) {
      toOthers.push_back(10 * r + q);
      fromOthers.push_back(10 * q + r);
      ofRanks.push_back(q);
      expected.insert(expected.end(), 10 * q + r, 100 * q + r);
      gathered.insert(gathered.end(), q, q);
    }
    std::vector<int64_t> values;
    for (uint32_t q = 0; q < kRanks; ++q)
      values.insert(values.end(), 10 * r + q, 100 * r + q);
    std::vector<int64_t> result(expected.size());
    allToAllv<int64_t>(comm, values, Parts::packed(toOthers), result, Parts::packed(fromOthers));
    EXPECT_EQ(result, expected);

    const std::vector<int64_t> own(r, r);
    std::vector<int64_t> all(gathered.size());
    allGatherv<int64_t>(comm, own, all, Parts::packed(ofRanks));
    EXPECT_EQ(all, gathered);
    std::vector<int64_t> atRoot(gathered.size());
    gatherv<int64_t>(comm, own, atRoot, Parts::packed(ofRanks), 1);
    EXPECT_EQ(atRoot, r == 1 ? gathered : std::vector<int64_t>(gathered.size()));
    std::vector<int64_t> part(r);
    scatterv<int64_t>(comm, r == 1 ? gathered : std::vector<int64_t>(), Parts::packed(ofRanks),
                      part, 1);
    EXPECT_EQ(part, own);
  });
}

TEST(TransferWrapper, PartsLieInsideOfTheBuffer) {
  std::vector<Communicator> ranks = Communicator::all(1);
  std::vector<int32_t> values(4), result(4);
  // Nor is anything of the group, though it goes on.
  EXPECT_THROW(group([&] {
                 EXPECT_THROW(allToAllv<int32_t>(ranks[0], values, Parts::packed({4}), result,
                                                 Parts::packed({5})),
                              Error);
                 send<int32_t>(ranks[0], values, 0);
               }),
               Error);
  const Parts right = Parts::packed({4});
  EXPECT_NE(whatOf([&] {
              allToAllv<int32_t>(ranks[0], values, right, result, Parts::packed({2, 2}));
            }).find("received has 2 counts and 2 displacements for 1 ranks"),
            std::string::npos);
  EXPECT_NE(whatOf([&] {
              allToAllv<int32_t>(ranks[0], values, {{2}, {3}}, result, right);
            }).find("sent: the part of rank 0 ends behind the buffer, which has 4 elements"),
            std::string::npos);
}

} // namespace
} // namespace occl::communicator::testing
