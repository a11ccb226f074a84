#include "test/machines/islands.h"

#include "plan/collectives/collectives.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::communicator::testing {

namespace {

/// What a rank has at a place: sums of some hundred are exact.
int32_t numberOf(uint32_t rank, uint64_t place) {
  return static_cast<int32_t>((rank * 31 + place * 7 + place / 1000) % 101);
}

std::vector<int32_t> numbersOf(uint32_t rank, uint64_t count) {
  std::vector<int32_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i)
    numbers[i] = numberOf(rank, i);
  return numbers;
}

int32_t sumOf(uint32_t numRanks, uint64_t place) {
  int32_t sum = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    sum += numberOf(r, place);
  return sum;
}

std::string runKind(occlComm_t comm, plan::StandardCollective kind, uint32_t numRanks,
                    uint32_t rank, uint32_t root, uint64_t count) {
  const plan::Parts parts = {numRanks, root, count};
  const auto input = numbersOf(rank, inputSize(kind, parts));
  std::vector<int32_t> output(outputSize(kind, parts), -1);
  const auto known = static_cast<occlKind_t>(occlKindAllReduce + static_cast<int>(kind));
  if (occlCallOfKind(known, input.data(), output.data(), count, occlInt32, occlSum, root, comm,
                     nullptr) != occlSuccess)
    return lastError(nameOf(kind));
  for (uint64_t i = 0; i < output.size(); ++i) {
    const auto goal = goalOf(kind, parts, rank, i);
    if (!goal)
      continue;
    const int32_t expected =
        goal->ofAllRanks ? sumOf(numRanks, goal->index) : numberOf(goal->rank, goal->index);
    if (output[i] != expected)
      return std::string(nameOf(kind)) + " of " + std::to_string(count) + ", root " +
             std::to_string(root) + ": element " + std::to_string(i) + " of rank " +
             std::to_string(rank) + " is " + std::to_string(output[i]) + ", expected " +
             std::to_string(expected);
  }
  return "";
}

} // namespace

/// Bound until this process and its children have ended, so that the system gives it to nobody.
uint16_t freePort() {
  const int yes = 1, no = 0;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6; // all addresses, of IPv4, too
  sockaddr_in four{};
  four.sin_family = AF_INET; // where there are no others
  int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool isSix = socket >= 0;
  if (isSix)
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  else
    socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto *address = isSix ? reinterpret_cast<sockaddr *>(&six) : reinterpret_cast<sockaddr *>(&four);
  socklen_t size = isSix ? sizeof six : sizeof four;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  EXPECT_EQ(bind(socket, address, size), 0);
  EXPECT_EQ(getsockname(socket, address, &size), 0);
  return ntohs(isSix ? six.sin6_port : four.sin_port);
}

std::string newAddress() {
  return "127.0.0.1:" + std::to_string(freePort()) + "/a secret of this test";
}

std::string joinOn(uint32_t host, occlComm_t &comm, uint32_t numRanks, uint32_t rank,
                   const std::string &address, const occlConfig_t *config) {
  setenv("OCCL_HOSTID", std::to_string(host).c_str(), 1);
  return occlCommInitRank(&comm, numRanks, rank, address.c_str(), config) == occlSuccess
             ? ""
             : lastError("occlCommInitRank");
}

void onIslands(const std::vector<uint32_t> &hosts,
               const std::function<std::string(occlComm_t, uint32_t)> &body,
               const occlConfig_t &config) {
  const std::string address = newAddress();
  const auto numRanks = static_cast<uint32_t>(hosts.size());
  Processes processes(numRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    std::string wrong = joinOn(hosts[rank], comm, numRanks, rank, address, &config);
    if (wrong.empty())
      wrong = body(comm, rank);
    occlCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

void withARankThatStops(
    const std::vector<uint32_t> &hosts, uint32_t stopped, std::chrono::seconds pause,
    uint32_t numRounds,
    const std::function<std::string(occlComm_t, uint32_t rank, uint32_t i)> &round) {
  const std::string address = newAddress();
  const auto numRanks = static_cast<uint32_t>(hosts.size());
  Processes processes(numRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    std::string wrong = joinOn(hosts[rank], comm, numRanks, rank, address);
    for (uint32_t i = 0; i < numRounds && wrong.empty(); ++i) {
      if (rank == stopped && i == numRounds / 2)
        raise(SIGSTOP);
      wrong = round(comm, rank, i);
    }
    occlCommDestroy(comm);
    return wrong;
  });
  siginfo_t state = {}; // of a rank that has failed before: its end
  waitid(P_PID, static_cast<id_t>(processes.pid(stopped)), &state, WSTOPPED | WEXITED | WNOWAIT);
  std::this_thread::sleep_for(pause);
  processes.signal(stopped, SIGCONT);
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

std::string runCollectives(occlComm_t comm, uint64_t count) {
  uint32_t rank = 0, numRanks = 0;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &numRanks);
  std::string wrong;
  for (uint32_t i = 0; i < plan::kNumStandardCollectives; ++i)
    for (uint32_t root : {0u, numRanks - 1}) {
      const auto kind = static_cast<plan::StandardCollective>(i);
      if (wrong.empty() && (root == 0 || hasRoot(kind)))
        wrong = runKind(comm, kind, numRanks, rank, root, count);
    }
  return wrong;
}

} // namespace occl::communicator::testing
