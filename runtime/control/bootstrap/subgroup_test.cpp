// Groups of some ranks of a group of processes: what could go wrong in finding their memory.
#include "runtime/control/bootstrap/subgroup.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBytes = 8192;

/// What a rank tells the other one, in its segment.
struct Said {
  OfferHandle first, second;
};

Said &saidBy(const Group &group, uint32_t rank) {
  return *reinterpret_cast<Said *>(group.segment(rank).data());
}

/// Runs body(group) in two processes, which return 0 or a number that says where they failed.
void inPair(const std::function<int(Group &)> &body) {
  std::random_device random;
  ProcessGroupOptions options;
  options.name = "test-" + std::to_string(random()) + "-" + std::to_string(random());
  options.numRanks = 2;
  options.segmentBytes = kBytes;
  options.timeout = 20s;
  pid_t children[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0)
      continue;
    options.rank = rank;
    options.bell = *SharedBell::makeShared();
    auto group = formProcessGroup(options);
    _exit(group.ok() ? body(**group) : 100);
  }
  for (pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "exit status " << WEXITSTATUS(status);
  }
}

bool meet(Group &group) { return group.barrier(Deadline(20s)).ok(); }

std::vector<SubgroupMember> both(Group &group, const OfferHandle Said::*offer) {
  return {{0, saidBy(group, 0).*offer}, {1, saidBy(group, 1).*offer}};
}

/// Offers memory, and tells the other rank.
std::unique_ptr<SubgroupOffer> offer(Group &group, OfferHandle Said::*as = &Said::first) {
  auto own = SubgroupOffer::make(group, kBytes);
  if (!own.ok())
    return nullptr;
  saidBy(group, group.rank()).*as = (*own)->handle();
  return std::move(*own);
}

/// Of what both have offered first.
StatusOr<std::unique_ptr<Group>> form(Group &group, SubgroupOffer &own) {
  return formSubgroup(group, both(group, &Said::first), own, Deadline(20s));
}

TEST(Subgroup, IsFormedOfOffers) {
  inPair([](Group &group) {
    auto own = offer(group);
    if (!own || !meet(group))
      return 1;
    auto divided = form(group, *own);
    if (!divided.ok() || (*divided)->rank() != group.rank())
      return 2;
    (*divided)->segment(group.rank())[5] = std::byte(group.rank() + 1);
    if (!meet(**divided) || (*divided)->segment(1 - group.rank())[5] != std::byte(2 - group.rank()))
      return 3;
    return meet(**divided) ? 0 : 4;
  });
}

TEST(Subgroup, ALaterRecordInThePlaceOfAnOfferIsNotTakenForIt) {
  inPair([](Group &group) {
    auto own = offer(group);
    if (group.rank() == 1) {
      // Gives up, and offers as much for something else.
      own.reset();
      own = offer(group, &Said::second);
      if (saidBy(group, 1).second.place != saidBy(group, 1).first.place)
        return 1; // else this test would show nothing
    }
    if (!meet(group))
      return 2;
    if (group.rank() == 0) {
      auto divided = form(group, *own);
      if (divided.ok() || divided.status().code() != StatusCode::PeerFailed)
        return 3;
    }
    return meet(group) ? 0 : 4;
  });
}

TEST(Subgroup, WantOfDescriptorsIsNotTheDeathOfAPeer) {
  inPair([](Group &group) {
    auto own = offer(group);
    if (!own || !meet(group))
      return 1;
    if (group.rank() == 0) {
      rlimit none{0, 1024};
      if (setrlimit(RLIMIT_NOFILE, &none) != 0)
        return 2;
      auto divided = form(group, *own);
      if (divided.ok() || divided.status().code() != StatusCode::SystemError)
        return 3;
      if (!group.isAlive(1))
        return 4;
    }
    return meet(group) ? 0 : 5;
  });
}

TEST(Subgroup, SeesTheDeathOfAMemberAlsoWithoutItsParent) {
  inPair([](Group &group) {
    auto own = offer(group);
    if (!own || !meet(group))
      return 1;
    auto divided = form(group, *own);
    if (!divided.ok() || !meet(group))
      return 2;
    if (group.rank() == 1)
      _exit(0);
    for (int look = 0; look < 1000 && (*divided)->isAlive(1); ++look)
      std::this_thread::sleep_for(10ms);
    return (*divided)->isAlive(1) || !(*divided)->isAlive(0) ? 3 : 0;
  });
}

TEST(Subgroup, IsFormedByThreadsOfAProcessWhoseMainThreadHasEnded) {
  inPair([](Group &group) {
    // Nothing of it may be needed any more: the process ends with its thread.
    auto *rest = new std::thread([&group] {
      std::this_thread::sleep_for(100ms); // until main has ended
      auto own = offer(group);
      if (!own || !meet(group))
        _exit(1);
      auto divided = form(group, *own);
      if (!divided.ok() || !meet(**divided) || !(*divided)->isAlive(1 - group.rank()))
        _exit(2);
      _exit(meet(**divided) ? 0 : 3);
    });
    if (group.rank() == 1)
      syscall(SYS_exit, 0); // as pthread_exit, without unwinding the test
    rest->join();
    return 4;
  });
}

} // namespace
} // namespace occl::bootstrap
