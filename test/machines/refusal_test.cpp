// What ranks of several islands are refused, and who is not let in.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

std::string contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos ? ""
                                              : "expected '" + std::string(part) + "' in: " + text;
}

std::string expectRefused(occlResult_t result, const char *text) {
  return result == occlInvalidArgument ? contains(occlGetLastError(), text)
                                       : "not refused: expected '" + std::string(text) + "'";
}

TEST(Refusal, NamesWithoutSecretOrPort) {
  occlComm_t comm = nullptr;
  unsetenv("OCCL_SECRET");
  EXPECT_EQ(expectRefused(occlCommInitRank(&comm, 2, 1, "127.0.0.1:2000", nullptr), "OCCL_SECRET"),
            "");
  EXPECT_EQ(
      expectRefused(occlCommInitRank(&comm, 2, 1, "127.0.0.1:2000/short", nullptr), "at least 16"),
      "");
  EXPECT_EQ(
      expectRefused(occlCommInitRank(&comm, 2, 1, "127.0.0.1:0/long enough as it is", nullptr),
                    "expected HOST:PORT"),
      "");
}

TEST(Refusal, MissingRanksAreNamedByAll) {
  const std::string address = newAddress();
  Processes processes(3, [&](uint32_t rank) -> std::string {
    if (rank == 1)
      return "";
    occlComm_t comm = nullptr;
    const occlConfig_t config = withTimeout(1500);
    return contains(joinOn(rank, comm, 3, rank, address, &config), "rank 1 did not come");
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Refusal, AnotherSecretIsNotLetIn) {
  const std::string address = newAddress();
  Processes processes(2, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    const occlConfig_t config = withTimeout(1500);
    const std::string wrong =
        joinOn(rank, comm, 2, rank, rank == 0 ? address : address + " of others", &config);
    return contains(wrong, rank == 0 ? "turned away: 1 that did not know the secret of this job"
                                     : "is the secret the same");
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Refusal, ARankThatComesTwiceIsAnError) {
  const std::string address = newAddress();
  Processes processes(3, [&](uint32_t process) -> std::string {
    occlComm_t comm = nullptr;
    const occlConfig_t config = withTimeout(5000);
    const uint32_t rank = process == 0 ? 0 : 1;
    return contains(joinOn(process, comm, 3, rank, address, &config), "rank 1 is there already");
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

/// As one of two machines of torchrun, whose agents count for themselves how often they have
/// started their ranks again.
std::string joinAfterRestarts(const char *restarts, occlComm_t &comm, uint32_t rank,
                              const std::string &address) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
  setenv("MASTER_PORT", "29500", 1);
  setenv("TORCHELASTIC_RESTART_COUNT", restarts, 1);
  return joinOn(rank, comm, 2, rank, address);
}

std::string joinAndCall(const char *restarts, uint32_t rank, const std::string &address) {
  occlComm_t comm = nullptr;
  std::string wrong = joinAfterRestarts(restarts, comm, rank, address);
  if (wrong.empty())
    wrong = runCollectives(comm, 1000);
  occlCommDestroy(comm);
  return wrong;
}

TEST(Refusal, AMachineThatWasRestartedAloneIsLetIn) {
  const std::string address = newAddress();
  Processes processes(2, [&](uint32_t rank) -> std::string {
    for (int i = 0; i < 2; ++i) // as a program with several communicators
      if (std::string wrong = joinAndCall(rank == 0 ? "1" : "0", rank, address); !wrong.empty())
        return wrong;
    return "";
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

/// Reached by processes of a test one after the other.
class Milestone {
public:
  Milestone() { EXPECT_EQ(pipe(ends), 0); }
  ~Milestone() {
    close(ends[0]);
    close(ends[1]);
  }
  Milestone(const Milestone &) = delete;
  Milestone &operator=(const Milestone &) = delete;
  void reach() const { EXPECT_EQ(write(ends[1], "", 1), 1); }
  void await() const {
    char byte;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  }

private:
  int ends[2] = {-1, -1};
};

/// Rank 1 of the first run waits for its second communicator when rank 0 is started again.
TEST(Refusal, ARankOfAnEarlierRunIsSentAwayAndHarmsNobody) {
  const std::string address = newAddress();
  const Milestone isOver, isRefused;
  Processes processes(4, [&](uint32_t process) -> std::string {
    std::string wrong;
    if (process == 0) {
      wrong = joinAndCall("0", 0, address);
      isOver.reach();
    } else if (process == 1) {
      occlComm_t comm = nullptr;
      wrong = joinAndCall("0", 1, address);
      if (wrong.empty())
        wrong = contains(joinAfterRestarts("0", comm, 1, address),
                         "rank 1 is of another run of this job than rank 0");
      isRefused.reach();
    } else {
      process == 2 ? isOver.await() : isRefused.await();
      wrong = joinAndCall("1", process - 2, address);
    }
    return wrong;
  });
  for (uint32_t r = 0; r < 4; ++r)
    EXPECT_EQ(processes.join(r), 0) << "process " << r << ": " << processes.wrong(r);
}

/// Says `text` to whoever listens at the port, and stays.
int stranger(uint16_t port, const std::string &text) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(send(socket, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  return socket;
}

TEST(Refusal, StrangersDisturbNobody) {
  const std::string address = newAddress();
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
  Processes processes(2, [&](uint32_t rank) -> std::string {
    if (rank == 1)
      std::this_thread::sleep_for(500ms); // after the strangers
    occlComm_t comm = nullptr;
    std::string wrong = joinOn(rank, comm, 2, rank, address);
    if (wrong.empty())
      wrong = runCollectives(comm, 1000);
    occlCommDestroy(comm);
    return wrong;
  });
  std::vector<int> sockets;
  for (int i = 0; i < 100; ++i)
    sockets.push_back(stranger(port, i % 3 == 0   ? "GET / HTTP/1.1\r\n\r\n"
                                     : i % 3 == 1 ? std::string(72, 'x')
                                                  : std::string("OCCLNET1")));
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
  for (int socket : sockets)
    close(socket);
}

} // namespace
} // namespace occl::communicator::testing
