// Partitioned transfers under made-up schedules: whole requests of two ranks, epoch after epoch,
// with whoever sleeps while something is marked, read, matched or freed.
#include "runtime/api/occl_partitioned.h"
#include "runtime/api/occl_transfer.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

void succeed(occlResult_t result, const char *what) { require(result == occlSuccess, what); }

/// A partition is one number.
class Side {
public:
  Side(occlComm_t comm, bool isSend, uint32_t peer, int64_t partitions, uint64_t each,
       int64_t tag = 0, uint64_t perMessage = 0)
      : partitions(partitions), values(static_cast<uint64_t>(partitions) * each, -1) {
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.partitionsPerMessage = perMessage;
    succeed(isSend ? occlPsendInit(comm, values.data(), partitions, each, occlInt32, peer, tag,
                                   &config, &part)
                   : occlPrecvInit(comm, values.data(), partitions, each, occlInt32, peer, tag,
                                   nullptr, &part),
            "init");
  }
  void start() const { succeed(occlPstart(part), "start"); }
  void fill(int64_t p, int32_t epoch) {
    const auto each = static_cast<int64_t>(values.size()) / partitions;
    for (int64_t i = p * each; i < (p + 1) * each; ++i)
      values[static_cast<size_t>(i)] = 100 * epoch + static_cast<int32_t>(i);
  }
  void send(int64_t p, int32_t epoch) {
    fill(p, epoch);
    succeed(occlPready(part, p), "ready");
  }
  void sendAll(int32_t epoch) {
    for (int64_t p = partitions; p-- > 0;)
      send(p, epoch);
  }
  void wait() const { succeed(occlPwait(part), "wait"); }
  void check(int32_t epoch) const {
    for (size_t i = 0; i < values.size(); ++i)
      require(values[i] == 100 * epoch + static_cast<int32_t>(i), "wrong data");
  }
  void checkPartition(int64_t q, int32_t epoch) const {
    const auto each = static_cast<int64_t>(values.size()) / partitions;
    for (int64_t i = q * each; i < (q + 1) * each; ++i)
      require(values[static_cast<size_t>(i)] == 100 * epoch + static_cast<int32_t>(i),
              "wrong data has arrived");
  }
  bool hasArrived(int64_t q) const {
    int32_t arrived = 0;
    succeed(occlParrived(part, q, &arrived), "arrived");
    return arrived != 0;
  }
  void awaitArrival(int64_t q) const {
    while (!hasArrived(q))
      yieldProcessor();
  }
  void free() const { succeed(occlPfree(part), "free"); }

  const int64_t partitions;
  std::vector<int32_t> values;
  occlPart_t part = nullptr;
};

class Partitioned : public Daemon {
protected:
  void exploreBoth(uint64_t schedules, uint32_t workers,
                   const std::function<void(occlComm_t, uint32_t)> &body) {
    exploreRanks(schedules, withWorkers(workers), {},
                 [&](Ranks &ranks, uint32_t r) { body(ranks[r], r); });
  }
};

/// The receiver starts an epoch while the sender is about to end the last one, and the reverse.
TEST_F(Partitioned, EpochAfterEpoch) {
  for (uint64_t perMessage : {1, 2})
    exploreBoth(150, 1, [&](occlComm_t comm, uint32_t r) {
      Side side(comm, r == 0, 1 - r, r == 0 ? 3 : 2, r == 0 ? 2 : 3, 0, r == 0 ? perMessage : 0);
      for (int32_t epoch = 1; epoch <= 3; ++epoch) {
        side.start();
        if (r == 0)
          side.sendAll(epoch);
        side.wait();
        side.check(epoch);
        side.values.assign(side.values.size(), -1); // it is the program's again
      }
      side.free();
    });
}

/// A thread asks for partitions, another one waits and goes on: what the first is told of an epoch
/// holds for that.
TEST_F(Partitioned, StartAgainstLateReaders) {
  exploreBoth(150, 1, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, 2, 1);
    for (int32_t epoch = 1; epoch <= 2; ++epoch) {
      side.start();
      if (r == 0) {
        side.sendAll(epoch);
      } else {
        Thread reader([&] {
          side.awaitArrival(1);
          side.checkPartition(1, epoch);
        });
        side.awaitArrival(0);
        side.checkPartition(0, epoch);
        reader.join();
      }
      side.wait();
    }
    side.free();
  });
}

/// By several threads, of which any may be the last, while one waits already.
TEST_F(Partitioned, ThreadsThatMark) {
  exploreBoth(150, 1, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, 2, 1, 0, r == 0 ? 2 : 0);
    for (int32_t epoch = 1; epoch <= 2; ++epoch) {
      side.start();
      if (r == 0) {
        Thread other([&] { side.send(1, epoch); });
        side.send(0, epoch);
        side.wait();
        other.join();
      } else {
        side.wait();
        side.check(epoch);
      }
    }
    side.free();
  });
}

/// A partition that a list has twice is refused by the request, which lives as long as that takes.
TEST_F(Partitioned, AListThatHasOneTwice) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, 1, 1);
    side.start();
    if (r == 1) {
      side.wait();
      side.check(1);
      return side.free();
    }
    side.fill(0, 1);
    Thread other([part = side.part] {
      constexpr int64_t kTwice[] = {0, 0};
      require(occlPreadyList(part, 2, kTwice) == occlInvalidArgument, "not refused");
    });
    side.wait();
    side.free();
    other.join();
  });
}

/// Who sleeps is woken by what it waits for: a mark, a read, a match, a start.
TEST_F(Partitioned, AMarkWakesWhoReceives) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 1, 1 - r, 2, 1);
    side.start();
    if (r == 1)
      side.sendAll(1);
    side.wait();
    side.check(1);
    side.free();
  });
}
TEST_F(Partitioned, AReadWakesWhoSends) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, 2, 1);
    side.start();
    if (r == 0)
      side.sendAll(1);
    side.wait(); // and free nothing, which would wake the other rank as well
    side.check(1);
  });
}
TEST_F(Partitioned, AStartWakesWhoPrepares) {
  exploreWhoSleeps({}, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, 1, 1);
    side.start();
    if (r == 0) {
      succeed(occlPprepare(side.part), "prepare");
      side.sendAll(1);
    }
    side.wait();
    side.free();
  });
}

/// Nobody waits: the receiver does nothing but ask.
TEST_F(Partitioned, ArrivedAlone) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t r) {
    Side side(comm, r == 0, 1 - r, r == 0 ? 3 : 2, r == 0 ? 2 : 3);
    side.start();
    if (r == 0)
      side.sendAll(1);
    for (int64_t q = 0; r == 1 && q < 2; ++q) {
      side.awaitArrival(q);
      side.checkPartition(q, 1);
    }
    side.wait();
    side.free();
  });
}

/// Marks that are computed from arrivals, both ways, behind a send that nobody has received.
TEST_F(Partitioned, ThereAndBack) {
  exploreBoth(100, 1, [&](occlComm_t comm, uint32_t r) {
    const int32_t small = 3;
    int32_t got = 0;
    Side out(comm, true, 1 - r, 2, 1), in(comm, false, 1 - r, 2, 1);
    succeed(occlSend(&small, 1, occlInt32, 1 - r, comm, nullptr), "send");
    in.start();
    out.start();
    for (int64_t i = 0; i < 2; ++i) {
      if (r == 1 || i == 1)
        in.awaitArrival(r == 1 ? i : 0);
      out.send(i, 1);
    }
    in.wait();
    out.wait();
    in.check(1);
    succeed(occlRecv(&got, 1, occlInt32, 1 - r, comm, nullptr), "receive");
    require(got == 3, "wrong data");
    in.free();
    out.free();
  });
}

/// Made, used and freed, twice: words are used again when the peer has let go of them.
TEST_F(Partitioned, RequestsComeAndGo) {
  exploreBoth(150, 1, [&](occlComm_t comm, uint32_t r) {
    for (int32_t round = 1; round <= 3; ++round) {
      Side side(comm, r == 0, 1 - r, 1, 1, round % 2);
      side.start();
      if (r == 0)
        side.sendAll(round);
      side.wait();
      side.check(round);
      side.free();
    }
  });
}

/// Two of a tag, started in opposite orders, and one to oneself.
TEST_F(Partitioned, SeveralInAnyOrder) {
  exploreBoth(100, 2, [&](occlComm_t comm, uint32_t r) {
    Side first(comm, r == 0, 1 - r, 1, 1), second(comm, r == 0, 1 - r, 1, 2);
    Side own(comm, true, r, 2, 1, 5), back(comm, false, r, 1, 2, 5);
    for (Side *side : {r == 0 ? &second : &first, &back, r == 0 ? &first : &second, &own}) {
      side->start();
      if (side == &own || (r == 0 && side != &back))
        side->sendAll(1);
    }
    for (Side *side : {&first, &second, &back, &own}) {
      side->wait();
      side->check(1);
      side->free();
    }
  });
}

/// Before, while and after they are marked: each epoch ends once, with its data or without.
TEST_F(Partitioned, Abort) {
  expectNoDefect(200, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    Thread aborter([&] { succeed(occlCommAbort(ranks[1]), "abort"); });
    runRanks([&](uint32_t r) {
      std::vector<int32_t> values(2, r == 0 ? 7 : -1);
      occlPart_t part = nullptr;
      const auto eitherWay = [](occlResult_t result) {
        require(result == occlSuccess || result == occlAborted, "neither");
        return result == occlSuccess;
      };
      if (!eitherWay(
              r == 0
                  ? occlPsendInit(ranks[0], values.data(), 2, 1, occlInt32, 1, 0, nullptr, &part)
                  : occlPrecvInit(ranks[1], values.data(), 2, 1, occlInt32, 0, 0, nullptr, &part)))
        return;
      const bool hasBegun = eitherWay(occlPstart(part));
      for (int64_t p = 0; r == 0 && hasBegun && p < 2; ++p)
        eitherWay(occlPready(part, p));
      if (hasBegun && eitherWay(occlPwait(part)))
        require(values[0] == 7 && values[1] == 7, "wrong data");
      values.assign(2, -3); // it is the program's again
      succeed(occlPfree(part), "free");
    });
    aborter.join();
  });
}

TEST_F(Partitioned, AMismatchEndsBoth) {
  expectNoDefect(100, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    runRanks([&](uint32_t r) {
      std::vector<int32_t> values(4);
      occlPart_t part = nullptr;
      occlResult_t result =
          r == 0 ? occlPsendInit(ranks[0], values.data(), 2, 2, occlInt32, 1, 0, nullptr, &part)
                 : occlPrecvInit(ranks[1], values.data(), 1, 3, occlInt32, 0, 0, nullptr, &part);
      if (result == occlSuccess)
        result = occlPstart(part);
      if (result == occlSuccess)
        result = occlPwait(part);
      require(result == occlMismatch, "no mismatch");
      occlPfree(part);
    });
  });
}

} // namespace
} // namespace occl::explore
