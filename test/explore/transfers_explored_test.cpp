// Sends and receives under made-up schedules: of two ranks in groups, in opposite orders, through
// the ring and by reference, and with whoever sleeps while something comes.
#include "runtime/api/occl_transfer.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <sys/mman.h>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

/// Through the ring; as large as that may be; read where it lies.
constexpr uint64_t kSmall = 3, kEager = OCCL_EAGER_BYTES / sizeof(int32_t), kLarge = kEager + 1;

std::vector<int32_t> numbers(uint64_t count, int32_t first) {
  std::vector<int32_t> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = first + static_cast<int32_t>(i);
  return values;
}

class Transfers : public Daemon {
protected:
  static void send(const std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
    require(occlSend(values.data(), values.size(), occlInt32, peer, comm, nullptr) == occlSuccess,
            "send");
  }
  static void receive(std::vector<int32_t> &values, uint32_t peer, occlComm_t comm) {
    require(occlRecv(values.data(), values.size(), occlInt32, peer, comm, nullptr) == occlSuccess,
            "receive");
  }
  static void receiveAndCheck(uint64_t count, int32_t first, uint32_t peer, occlComm_t comm) {
    std::vector<int32_t> got(count, -1);
    receive(got, peer, comm);
    require(got == numbers(count, first), "wrong data");
  }
  /// In a group: to the other rank what `counts` says, and from it as much.
  static void exchange(occlComm_t comm, uint32_t r, const std::vector<uint64_t> &counts) {
    std::vector<std::vector<int32_t>> sent, got;
    for (uint64_t count : counts) {
      sent.push_back(numbers(count, static_cast<int32_t>(100 * r)));
      got.emplace_back(count, -1);
    }
    auto make = [&](bool isSend) {
      for (size_t i = 0; i < counts.size(); ++i)
        isSend ? send(sent[i], 1 - r, comm) : receive(got[i], 1 - r, comm);
    };
    require(occlGroupStart() == occlSuccess, "group");
    make(r == 0);
    make(r != 0);
    require(occlGroupEnd() == occlSuccess, "end");
    for (auto &values : sent) // they are the program's again
      values.assign(values.size(), -2);
    for (size_t i = 0; i < counts.size(); ++i)
      require(got[i] == numbers(counts[i], static_cast<int32_t>(100 - 100 * r)), "wrong data");
  }
  void exploreBoth(uint64_t schedules, uint32_t workers,
                   const std::function<void(Ranks &, uint32_t)> &body) {
    exploreRanks(schedules, withWorkers(workers), {}, body);
  }
};

TEST_F(Transfers, GroupsOfTwoThatSendToEachOther) {
  for (uint32_t workers : {1, 2})
    exploreBoth(100, workers, [&](Ranks &ranks, uint32_t r) {
      exchange(ranks[r], r, {kSmall, kLarge, 0});
      exchange(ranks[r], r, {kLarge, kEager});
    });
}

TEST_F(Transfers, OneAfterTheOther) {
  exploreBoth(100, 1, [&](Ranks &ranks, uint32_t r) {
    for (uint64_t count : {kSmall, kLarge}) {
      if (r == 0)
        send(numbers(count, 5), 1, ranks[0]);
      receiveAndCheck(count, 5, 1 - r, ranks[r]);
      if (r == 1)
        send(numbers(count, 5), 0, ranks[1]);
    }
  });
}

/// More than the ring holds: the sender waits for room, the receiver for more.
TEST_F(Transfers, AroundTheRing) {
  exploreBoth(60, 1, [&](Ranks &ranks, uint32_t r) {
    for (int32_t i = 0; i < 6; ++i)
      if (r == 0)
        send(numbers(kEager, i), 1, ranks[0]);
      else
        receiveAndCheck(kEager, i, 0, ranks[1]);
  });
}

TEST_F(Transfers, ToOneself) {
  exploreBoth(60, 1, [&](Ranks &ranks, uint32_t r) {
    for (uint64_t count : {kSmall, kLarge}) {
      const auto sent = numbers(count, 1);
      Thread other([&] { receiveAndCheck(count, 1, r, ranks[r]); });
      send(sent, r, ranks[r]);
      other.join();
    }
  });
}

/// Each thread has a direction of its own.
TEST_F(Transfers, SeveralThreadsOfARank) {
  exploreBoth(80, 1, [&](Ranks &ranks, uint32_t r) {
    Thread other([&] { send(numbers(kLarge, static_cast<int32_t>(r)), 1 - r, ranks[r]); });
    receiveAndCheck(kLarge, static_cast<int32_t>(1 - r), 1 - r, ranks[r]);
    other.join();
  });
}

TEST_F(Transfers, BesideACollective) {
  std::vector<Job> jobs = makeJobs(1, plansOfOneBlock()[1]);
  exploreRanks(80, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    Thread other([&] { exchange(ranks[r], r, {kLarge}); });
    require(jobs[0].run(ranks[r], r) == occlSuccess, "run");
    other.join();
    expectRight(jobs, r);
  });
}

/// One thread for all ranks: their devices' workers execute.
TEST_F(Transfers, AGroupOfBothRanks) {
  expectNoDefect(80, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    const auto sent = numbers(kLarge, 9);
    std::vector<int32_t> got(kLarge);
    require(occlGroupStart() == occlSuccess, "group");
    receive(got, 0, ranks[1]);
    send(sent, 1, ranks[0]);
    require(occlGroupEnd() == occlSuccess, "end");
    require(got == sent, "wrong data");
  });
}

TEST_F(Transfers, ASendWakesItsReceiver) {
  for (uint64_t count : {uint64_t{0}, kSmall, kLarge})
    exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
      r == 0 ? receiveAndCheck(count, 3, 1, comm) : send(numbers(count, 3), 0, comm);
    });
}

TEST_F(Transfers, AReceiveWakesItsSender) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    r == 0 ? send(numbers(kLarge, 3), 1, comm) : receiveAndCheck(kLarge, 3, 0, comm);
  });
  // Four do not fit.
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    for (int32_t i = 0; i < 4; ++i)
      r == 0 ? send(numbers(kEager, i), 1, comm) : receiveAndCheck(kEager, i, 0, comm);
  });
}

/// Several directions, each of which may be the last to end, on whatever thread.
TEST_F(Transfers, RequestsOfGroups) {
  for (uint32_t workers : {1, 2})
    exploreBoth(150, workers, [&](Ranks &ranks, uint32_t r) {
      std::vector<int32_t> sent = numbers(kLarge, static_cast<int32_t>(r));
      std::vector<int32_t> got(kLarge, -1), own(kSmall, -1);
      require(occlGroupStart() == occlSuccess, "group");
      send(sent, 1 - r, ranks[r]);
      receive(got, 1 - r, ranks[r]);
      occlRequest_t both = 0, last = 0;
      require(occlGroupEndAsync(ranks[r], 0, nullptr, nullptr, &both) == occlSuccess, "end");
      require(occlGroupStart() == occlSuccess, "group");
      std::vector<int32_t> small = numbers(kSmall, 7);
      receive(own, r, ranks[r]);
      send(small, r, ranks[r]);
      require(occlGroupEndAsync(ranks[r], 0, nullptr, nullptr, &last) == occlSuccess, "end");
      require(occlWait(ranks[r], r == 0 ? both : last) == occlSuccess, "wait");
      require(occlWait(ranks[r], r == 0 ? last : both) == occlSuccess, "wait");
      sent.assign(sent.size(), -2); // it is the program's again
      small.assign(small.size(), -2);
      require(got == numbers(kLarge, static_cast<int32_t>(1 - r)), "wrong data");
      require(own == numbers(kSmall, 7), "wrong data");
    });
}

/// The communicator ends as soon as its group's callback has returned.
TEST_F(Transfers, CallbacksOfGroups) {
  for (uint32_t neverBlocks : {0, 1})
    expectNoDefect(200, [&, neverBlocks] {
      std::array<Atomic<uint32_t>, kRanks> calls{};
      std::array<std::vector<int32_t>, kRanks> got;
      const std::vector<int32_t> sent = numbers(kLarge, 3);
      {
        Ranks ranks(kRanks, withWorkers(1));
        runRanks([&](uint32_t r) {
          got[r].resize(kLarge, -1);
          require(occlGroupStart() == occlSuccess, "group");
          send(sent, 1 - r, ranks[r]);
          receive(got[r], 1 - r, ranks[r]);
          const occlCallback_t count = [](occlRequest_t, occlResult_t result, void *user) {
            require(result == occlSuccess, "a group failed");
            static_cast<Atomic<uint32_t> *>(user)->fetch_add(1);
          };
          require(occlGroupEndAsync(ranks[r], neverBlocks, count, &calls[r], nullptr) ==
                      occlSuccess,
                  "end");
        });
      }
      for (uint32_t r = 0; r < kRanks; ++r) {
        require(calls[r].load() == 1, "the callback was not called once");
        require(got[r] == sent, "wrong data");
      }
    });
}

/// Before, while and after they begin: each ends once, with its data or without.
TEST_F(Transfers, AbortOfGroupsWithRequests) {
  const std::vector<int32_t> sent = numbers(kLarge, 3);
  for (uint32_t neverBlocks : {0, 1})
    expectNoDefect(300, [&, neverBlocks] {
      std::array<Atomic<uint32_t>, kRanks> calls{};
      std::array<std::vector<int32_t>, kRanks> got;
      uint32_t begun[kRanks] = {};
      {
        Ranks ranks(kRanks, withWorkers(1));
        Thread aborter([&] { require(occlCommAbort(ranks[1]) == occlSuccess, "abort"); });
        runRanks([&](uint32_t r) {
          got[r].resize(kLarge, -1);
          require(occlGroupStart() == occlSuccess, "group");
          send(sent, 1 - r, ranks[r]);
          receive(got[r], 1 - r, ranks[r]);
          const occlCallback_t count = [](occlRequest_t, occlResult_t result, void *user) {
            require(result == occlSuccess || result == occlAborted, "neither");
            static_cast<Atomic<uint32_t> *>(user)->fetch_add(1);
          };
          occlRequest_t request = 0;
          const occlResult_t result =
              occlGroupEndAsync(ranks[r], neverBlocks, count, &calls[r], &request);
          require(result == occlSuccess || result == occlAborted, "neither");
          begun[r] = result == occlSuccess;
          if (begun[r] && r == 0) {
            const occlResult_t ended = occlWait(ranks[r], request);
            require(ended == occlSuccess || ended == occlAborted, "neither");
            require(ended == occlAborted || got[r] == sent, "wrong data");
          }
        });
        aborter.join();
      }
      for (uint32_t r = 0; r < kRanks; ++r)
        require(calls[r].load() == begun[r], "the callback was not called once");
    });
}

TEST_F(Transfers, ASendWakesAThreadThatWaitsForAGroup) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    if (r == 1)
      return send(numbers(kSmall, 3), 0, comm);
    std::vector<int32_t> got(kSmall, -1);
    occlRequest_t request = 0;
    require(occlGroupStart() == occlSuccess, "group");
    receive(got, 1, comm);
    require(occlGroupEndAsync(comm, 0, nullptr, nullptr, &request) == occlSuccess, "end");
    require(occlWait(comm, request) == occlSuccess, "wait");
    require(got == numbers(kSmall, 3), "wrong data");
  });
}

/// Memory that cannot be accessed any more once it is gone.
class Pages {
public:
  explicit Pages(uint64_t count) : bytes(count * sizeof(int32_t)) {
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    values = {static_cast<int32_t *>(pages), count};
  }
  ~Pages() { munmap(values.data(), bytes); }

  std::span<int32_t> values;

private:
  uint64_t bytes;
};

/// A program that has its buffer back may free it: nobody reads it then.
TEST_F(Transfers, AbortWhileDataAreRead) {
  constexpr uint64_t kPieces = 300000; // some
  const std::vector<int32_t> expected = numbers(kPieces, 4);
  expectNoDefect(300, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    Thread aborter([&] { require(occlCommAbort(ranks[1]) == occlSuccess, "abort"); });
    runRanks([&](uint32_t r) {
      Pages buffer(kPieces);
      if (r == 0)
        std::ranges::copy(expected, buffer.values.begin());
      const occlResult_t result =
          r == 0 ? occlSend(buffer.values.data(), kPieces, occlInt32, 1, ranks[0], nullptr)
                 : occlRecv(buffer.values.data(), kPieces, occlInt32, 0, ranks[1], nullptr);
      require(result == occlSuccess || result == occlAborted, "neither");
      if (r == 1 && result == occlSuccess)
        require(std::ranges::equal(buffer.values, expected), "wrong data");
    });
    aborter.join();
  });
}

TEST_F(Transfers, AMismatchEndsBoth) {
  expectNoDefect(100, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    runRanks([&](uint32_t r) {
      std::vector<int32_t> values(kLarge + 1);
      require((r == 0 ? occlSend(values.data(), kLarge, occlInt32, 1, ranks[0], nullptr)
                      : occlRecv(values.data(), kLarge + 1, occlInt32, 0, ranks[1], nullptr)) ==
                  occlMismatch,
              "no mismatch");
    });
  });
}

} // namespace
} // namespace occl::explore
