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
#include <sys/stat.h>
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

TEST(Environment, AProcessThatTriesToMakeACommunicatorIsReported) {
  // So that `occl nccl` does not guess at why none was made where an error has said it.
  const std::string path = ::testing::TempDir() + "occl_nccl_report_" + std::to_string(getpid());
  for (const bool isOnHost : {true, false}) {
    unlink(path.c_str());
    Processes processes(1, [&](uint32_t) -> std::string {
      setenv("OCCL_NCCL_REPORT", path.c_str(), 1);
      isOnHost ? setenv("OCCL_NCCL_HOST", "1", 1) : unsetenv("OCCL_NCCL_HOST");
      std::ofstream(path).close();
      ncclComm_t comm = nullptr;
      if (ncclCommInitAll(&comm, isOnHost ? 0 : 1, nullptr) == ncclSuccess)
        ncclCommDestroy(comm); // there is a device
      std::ifstream file(path);
      return std::string(std::istreambuf_iterator<char>(file), {}).empty() ? "nothing is reported"
                                                                           : "";
    });
    EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  }
  unlink(path.c_str());
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

TEST(Environment, MessagesAreThoseOfTheLevelWhereverItIsSet) {
  constexpr const char *kNothing = nullptr;
  const struct Case {
    const char *title, *inEnvironment, *inNamedFile, *inHome, *file;
    bool saysVersion, saysErrors, saysCommunicators;
  } cases[] = {
      {"nothing", kNothing, kNothing, kNothing, kNothing, false, false, false},
      {"VERSION", "VERSION", kNothing, kNothing, kNothing, true, false, false},
      {"WARN", "WARN", kNothing, kNothing, kNothing, true, true, false},
      {"TRACE", "TRACE", kNothing, kNothing, kNothing, true, true, true},
      {"small letters", "info", kNothing, kNothing, kNothing, true, true, true},
      {"small letters in a file", kNothing, "NCCL_DEBUG=Warn", kNothing, kNothing, true, true,
       false},
      {"no level", "LOUD", kNothing, kNothing, kNothing, false, false, false},
      {"the environment before the file", "WARN", "NCCL_DEBUG=INFO\n", kNothing, kNothing, true,
       true, false},
      {"lines that are none", kNothing, "=\n#NCCL_DEBUG=INFO\nNCCL_DEBUG\n\n\xff\n", kNothing,
       kNothing, false, false, false},
      {"the file before that at home", kNothing, "NCCL_DEBUG=VERSION", "NCCL_DEBUG=INFO", kNothing,
       true, false, false},
      {"the file at home", kNothing, kNothing, "\tNCCL_DEBUG\t=\tINFO\r\n", kNothing, true, true,
       true},
      {"a file that is not there", "INFO", "", kNothing, kNothing, true, true, true},
      {"a log that cannot be written", "INFO", kNothing, kNothing, "/no/such/folder/log", true,
       true, true},
  };
  for (const Case &each : cases) {
    const std::string path = ::testing::TempDir() + "occl_nccl_level_" + std::to_string(getpid());
    Processes processes(1, [&](uint32_t) -> std::string {
      const auto set = [](const char *name, const char *value) {
        value ? setenv(name, value, 1) : unsetenv(name);
      };
      set("NCCL_DEBUG", each.inEnvironment);
      set("NCCL_DEBUG_FILE", each.file);
      set("NCCL_CONF_FILE", each.inNamedFile ? (path + ".conf").c_str() : nullptr);
      set("HOME", ::testing::TempDir().c_str());
      const std::string home = ::testing::TempDir() + "/.nccl.conf";
      unlink(home.c_str());
      unlink((path + ".conf").c_str());
      if (each.inNamedFile && *each.inNamedFile)
        std::ofstream(path + ".conf") << each.inNamedFile;
      if (each.inHome)
        std::ofstream(home) << each.inHome;
      if (!std::freopen((path + ".err").c_str(), "w", stderr))
        return "no file";
      ncclComm_t comm = nullptr;
      ncclCommInitAll(&comm, 1, nullptr);
      ncclCommCount(nullptr, nullptr);
      ncclCommDestroy(comm);
      std::fflush(stderr);
      unlink(home.c_str());
      std::ifstream file(path + ".err");
      const std::string said(std::istreambuf_iterator<char>(file), {});
      const std::pair<const char *, bool> wanted[] = {
          {"OCCL in the place of NCCL", each.saysVersion},
          {"comm must not be NULL", each.saysErrors},
          {"rank 0 of 1, device 0", each.saysCommunicators}};
      for (const auto &[text, isWanted] : wanted)
        if ((said.find(text) != std::string::npos) != isWanted)
          return std::string(text) + (isWanted ? " is missing in: " : " is said: ") + said;
      return "";
    });
    EXPECT_EQ(processes.join(0), 0) << each.title << ": " << processes.wrong(0);
  }
}

TEST(Environment, LogsOfSeveralProcessesHaveHostAndProcessInTheirNames) {
  const std::string folder = ::testing::TempDir() + "occl_nccl_logs_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  Processes processes(2, [&](uint32_t) -> std::string {
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_FILE", (folder + "/%h-%p-%x-%").c_str(), 1);
    ncclComm_t comm = nullptr;
    if (ncclCommInitAll(&comm, 1, nullptr) != ncclSuccess)
      return ncclGetLastError(nullptr);
    ncclCommDestroy(comm);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string path =
        folder + "/" + host + "-" + std::to_string(getpid()) + "-x-%"; // else as it is
    std::ifstream file(path);
    const std::string said(std::istreambuf_iterator<char>(file), {});
    unlink(path.c_str());
    return said.find("process " + std::to_string(getpid())) != std::string::npos ? "" : path;
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
  EXPECT_EQ(rmdir(folder.c_str()), 0); // there was nothing else
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

/// As scripts set it that have nothing to say: the ids of all their jobs would be one.
TEST(Environment, AnEmptyIdOfTheJobIsNone) {
  Processes processes(1, [&](uint32_t) -> std::string {
    setenv("NCCL_COMM_ID", "", 1);
    ncclUniqueId first, second;
    if (ncclGetUniqueId(&first) != ncclSuccess || ncclGetUniqueId(&second) != ncclSuccess)
      return ncclGetLastError(nullptr);
    const std::string key(first.internal + 40, 8), none(8, '\0');
    if (key == none || std::string(first.internal + 48, 8) == none)
      return "it has no key, or no root";
    return key != std::string(second.internal + 40, 8) ? "" : "both have one key";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
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
