// What the environment decides, which a process reads once: each test in a child, and nothing of
// the interface in this process.
#include "nccl/nccl_abi.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <string>
#include <unistd.h>

using occl::communicator::testing::Processes;

TEST(Environment, WithoutHostModeAndCudaTheErrorSaysWhatToDo) {
  Processes processes(1, [](uint32_t) -> std::string {
    unsetenv("OCCL_NCCL_HOST");
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess)
      return ncclGetLastError(nullptr);
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, 1, id, 0);
    if (result == ncclSuccess) // there is a device, and another test's subject
      return "";
    const std::string text = ncclGetLastError(nullptr);
    return result == ncclUnhandledCudaError &&
                   (text.find("OCCL_NCCL_HOST=1") != std::string::npos ||
                    text.find("cuInit") != std::string::npos)
               ? ""
               : text;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Environment, SettingsThatMeanNothingAreNamedOnceAndMessagesGoWhereTheyAreTold) {
  const std::string path = ::testing::TempDir() + "occl_nccl_" + std::to_string(getpid());
  Processes processes(1, [&](uint32_t) -> std::string {
    std::ofstream(path + ".conf") << "# a comment\nNCCL_DEBUG = INFO\n NCCL_IB_HCA=mlx5 # unused\n";
    setenv("NCCL_CONF_FILE", (path + ".conf").c_str(), 1);
    setenv("NCCL_DEBUG_FILE", (path + ".%p.log").c_str(), 1);
    setenv("NCCL_P2P_LEVEL", "LOC", 1);
    setenv("NCCL_P2P_DISABLE", "1", 1); // known
    if (!std::freopen((path + ".err").c_str(), "w", stderr))
      return "no file";
    for (int i = 0; i < 2; ++i) {
      ncclComm_t comm = nullptr;
      ncclCommInitAll(&comm, 1, nullptr);
      ncclCommDestroy(comm);
    }
    ncclCommCount(nullptr, nullptr);
    std::fflush(stderr);
    auto read = [](const std::string &name) {
      std::ifstream file(name);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const std::string said = read(path + ".err");
    const std::string ignored = "is ignored: NCCL_IB_HCA, NCCL_P2P_LEVEL\n";
    if (said.find(ignored) == std::string::npos || said.find(ignored) != said.rfind(ignored))
      return "standard error has: " + said;
    const std::string logged = read(path + "." + std::to_string(getpid()) + ".log");
    for (const char *part : {"comm must not be NULL", "rank 0 of 1, device 0"})
      if (logged.find(part) == std::string::npos)
        return "logged: " + logged;
    return "";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Environment, SaysWhereTheProcessThatMakesAnIdListens) {
  struct Case {
    const char *interface, *family;
    char number; // of the family in the id
  };
  for (const Case &each : {Case{"=lo", "AF_INET", 4}, Case{"lo", "AF_INET", 4},
                           Case{"^nothing,=x", "AF_INET", 4}, Case{"no_such_interface", "", 0}}) {
    Processes processes(1, [&](uint32_t) -> std::string {
      setenv("NCCL_SOCKET_IFNAME", each.interface, 1);
      setenv("NCCL_SOCKET_FAMILY", each.family, 1);
      ncclUniqueId id;
      if (ncclGetUniqueId(&id) != ncclSuccess)
        return ncclGetLastError(nullptr);
      if (id.internal[56] != each.number)
        return "the family is " + std::to_string(id.internal[56]);
      const bool hasPort = id.internal[58] || id.internal[59];
      const std::string address(id.internal + 60, 4);
      if (hasPort != (each.number != 0) ||
          (std::string(each.interface).ends_with("lo") && address != std::string("\x7f\0\0\1", 4)))
        return "another address or port";
      return "";
    });
    EXPECT_EQ(processes.join(0), 0) << each.interface << ": " << processes.wrong(0);
  }
}

TEST(Environment, OfAContainerIsAnotherMachine) {
  for (const bool isContainer : {false, true}) {
    Processes processes(1, [&](uint32_t) -> std::string {
      ncclUniqueId before, after;
      if (ncclGetUniqueId(&before) != ncclSuccess)
        return ncclGetLastError(nullptr);
      if (isContainer && unshare(CLONE_NEWNET) != 0)
        return ""; // it takes privileges
      if (ncclGetUniqueId(&after) != ncclSuccess)
        return ncclGetLastError(nullptr);
      const bool isSame = std::memcmp(before.internal + 8, after.internal + 8, 16) == 0;
      return isSame != isContainer ? "" : "the machine is wrong";
    });
    EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  }
}
