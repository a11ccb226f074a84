// The process that makes an id, and who comes to it over the network: each test in a child, whose
// descriptors are its own.
#include "nccl/nccl_abi.h"
#include "nccl/testing/checked_call.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <netinet/in.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using occl::communicator::testing::Processes;
using occl::nccl::testing::where;

namespace {

std::atomic<bool> isExhausted = false;
std::atomic<int> numVain = 0; // accepted in vain

} // namespace

/// Of this program: there may be no descriptor left.
extern "C" int accept4(int listener, sockaddr *address, socklen_t *length, int flags) {
  static const auto real = reinterpret_cast<decltype(&::accept4)>(dlsym(RTLD_NEXT, "accept4"));
  if (!isExhausted)
    return real(listener, address, length, flags);
  ++numVain;
  errno = EMFILE;
  return -1;
}

namespace {

size_t numDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/// An id whose root listens at the loopback.
std::string makeId(ncclUniqueId &id) {
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
  if (ncclGetUniqueId(&id) != ncclSuccess)
    return where("ncclGetUniqueId");
  return id.internal[56] == 4 ? "" : "the root listens on no network";
}

/// A connection to the id's root, of somebody who says nothing. Stays open.
std::string connectTo(const ncclUniqueId &id) {
  sockaddr_in address{};
  uint16_t port = 0;
  std::memcpy(&port, id.internal + 58, sizeof port);
  std::memcpy(&address.sin_addr, id.internal + 60, 4);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return file >= 0 && connect(file, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0
             ? ""
             : std::string("a stranger: ") + std::strerror(errno);
}

/// Two ranks of this thread, which ask the root.
std::string comeTogether(const ncclUniqueId &id) {
  ncclComm_t comms[2] = {};
  float values[2] = {1, 2};
  for (int rank = 0; rank < 2; ++rank)
    if (ncclCommInitRank(&comms[rank], 2, id, rank) != ncclSuccess)
      return where("ncclCommInitRank");
  ncclGroupStart();
  for (int rank = 0; rank < 2; ++rank)
    ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, ncclSum, comms[rank], nullptr);
  if (ncclGroupEnd() != ncclSuccess)
    return where("ncclGroupEnd");
  for (ncclComm_t comm : comms)
    ncclCommDestroy(comm);
  return values[0] == 3 && values[1] == 3 ? "" : "the sum is wrong";
}

} // namespace

TEST(Root, GivesStrangersOfTheNetworkAShareOfTheDescriptors) {
  Processes processes(1, [](uint32_t) -> std::string {
    constexpr size_t kLimit = 400, kShare = kLimit / 8, kStrangers = 3 * kShare;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = kLimit;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
      return "no limit";
    ncclUniqueId id;
    std::string wrong = makeId(id);
    const size_t before = numDescriptors();
    for (size_t i = 0; i < kStrangers && wrong.empty(); ++i)
      wrong = connectTo(id);
    if (!wrong.empty())
      return wrong;
    const auto numTaken = [&] { return numDescriptors() - before - kStrangers; };
    while (numTaken() < kShare) // it takes as many as it may
      usleep(1000);
    usleep(200000);
    if (numTaken() > kShare)
      return "strangers have taken " + std::to_string(numTaken()) + " descriptors";
    return comeTogether(id); // ranks of the machine come as before
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Root, RestsWithoutDescriptorsAndGoesOnWhenThereAreSome) {
  Processes processes(1, [](uint32_t) -> std::string {
    constexpr int kMost = 100; // it could do thousands
    ncclUniqueId id;
    std::string wrong = makeId(id);
    isExhausted = true;
    if (wrong.empty())
      wrong = connectTo(id);
    if (!wrong.empty())
      return wrong;
    while (numVain == 0)
      usleep(1000);
    usleep(300000);
    if (numVain > kMost)
      return "it tries again " + std::to_string(numVain) + " times";
    isExhausted = false;
    return comeTogether(id);
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}
