#include "runtime/observe/report/report_signal.h"

#include "runtime/observe/report/output.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::insight {
namespace {

std::string contents(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string temporary(const std::string &name) {
  const char *folder = std::getenv("TEST_TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/" + name + "." + std::to_string(getpid());
}

/// What the file has once it has something; the test's own time limit ends the wait.
std::string awaitContents(const std::string &path) {
  while (contents(path).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return contents(path);
}

std::string header(uint32_t rank, uint32_t numRanks = 2) {
  return "OCCL: rank " + std::to_string(rank) + " of " + std::to_string(numRanks) + ", process " +
         std::to_string(getpid()) + ", reports:\n";
}

std::atomic<int> formerCalls{0};

TEST(ReportSignal, EveryReporterWritesAndTheFormerHandlerIsCalled) {
  struct sigaction former {};
  former.sa_handler = [](int) { ++formerCalls; };
  sigaction(SIGUSR1, &former, nullptr);
  std::string pattern = temporary("report.%r");
  ReporterRegistration first({0, 2, [] { return std::string("zero\n"); }});
  ASSERT_TRUE(reportOnSignal(SIGUSR1, pattern).ok());
  ASSERT_TRUE(reportOnSignal(SIGUSR1, pattern).ok()) << "arming twice must not chain to itself";
  ReporterRegistration second({1, 2, [] { return std::string("one\n"); }});
  raise(SIGUSR1);
  EXPECT_EQ(awaitContents(pathOf(pattern, 1, 2)), header(1) + "one\n");
  EXPECT_EQ(awaitContents(pathOf(pattern, 0, 2)), header(0) + "zero\n");
  EXPECT_EQ(formerCalls.load(), 1);
}

struct sigaction foundByProgram;
std::atomic<int> laterCalls{0};

TEST(ReportSignal, EachOfTheHandlersThatCallEachOtherIsCalledOnce) {
  struct sigaction former {
  }, later{};
  former.sa_handler = [](int) { ++formerCalls; };
  sigaction(SIGUSR1, &former, nullptr);
  const std::string pattern = temporary("chained.%r");
  ReporterRegistration reporter({0, 1, [] { return std::string("text\n"); }});
  ASSERT_TRUE(reportOnSignal(SIGUSR1, pattern).ok());
  // The program's is installed over ours, calls it, and finds ours over it.
  later.sa_flags = SA_SIGINFO;
  later.sa_sigaction = [](int signal, siginfo_t *info, void *context) {
    ++laterCalls;
    foundByProgram.sa_sigaction(signal, info, context);
  };
  sigaction(SIGUSR1, &later, &foundByProgram);
  ASSERT_TRUE(reportOnSignal(SIGUSR1, pattern).ok());
  formerCalls = 0;
  for (int calls = 1; calls <= 2; ++calls) {
    raise(SIGUSR1);
    EXPECT_EQ(laterCalls.load(), calls);
    EXPECT_EQ(formerCalls.load(), calls);
  }
  EXPECT_NE(awaitContents(pathOf(pattern, 0, 1)).find("text"), std::string::npos);
}

#ifndef __SANITIZE_THREAD__ // it ends children of processes with threads that start threads
TEST(ReportSignal, AChildReportsOnceItAsksAndForItselfAlone) {
  const std::string ofParent = temporary("parent.%r"), ofChild = temporary("child.%r");
  ReporterRegistration reporter({0, 2, [] { return std::string("parent\n"); }});
  ASSERT_TRUE(reportOnSignal(SIGUSR2, ofParent).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    raise(SIGUSR2); // nobody of this process has asked for anything
    ReporterRegistration own({1, 2, [] { return std::string("child\n"); }});
    if (!reportOnSignal(SIGUSR2, ofChild).ok())
      _exit(1);
    raise(SIGUSR2);
    _exit(awaitContents(pathOf(ofChild, 1, 2)) == header(1) + "child\n" ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(pathOf(ofChild, 0, 2)), "") << "by the child for the parent's reporter";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(contents(pathOf(ofParent, 0, 2)), "") << "by the parent for the child's signal";
}
#endif

TEST(ReportSignal, TheThreadComesAndGoesWithTheReporters) {
  std::string pattern = temporary("again.%r");
  ASSERT_TRUE(reportOnSignal(SIGUSR2, pattern).ok());
  raise(SIGUSR2); // nobody has anything to report
  for (uint32_t round = 0; round < 3; ++round) {
    ReporterRegistration reporter({round, 4, [] { return std::string("text\n"); }});
    raise(SIGUSR2);
    EXPECT_NE(awaitContents(pathOf(pattern, round, 4)).find("text"), std::string::npos);
  }
}

TEST(ReportSignal, TheEndOfAReporterWaitsForItsOwnReportAlone) {
  std::string pattern = temporary("slow.%r");
  std::atomic<bool> isBegun{false}, mayEnd{false};
  std::atomic<int> others{0};
  auto slow = std::make_unique<ReporterRegistration>(Reporter{0, 4, [&] {
                                                                isBegun = true;
                                                                while (!mayEnd)
                                                                  std::this_thread::yield();
                                                                return std::string("slow\n");
                                                              }});
  std::vector<std::unique_ptr<ReporterRegistration>> rest;
  for (uint32_t rank = 1; rank < 4; ++rank)
    rest.push_back(std::make_unique<ReporterRegistration>(Reporter{rank, 4, [&] {
                                                                     ++others;
                                                                     return std::string("quick\n");
                                                                   }}));
  ASSERT_TRUE(reportOnSignal(SIGUSR2, pattern).ok());
  raise(SIGUSR2);
  while (!isBegun)
    std::this_thread::yield();
  auto removed = std::async(std::launch::async, [&] { rest.clear(); });
  EXPECT_EQ(removed.wait_for(std::chrono::seconds(30)), std::future_status::ready)
      << "they wait for another one's report";
  auto last = std::async(std::launch::async, [&] { slow.reset(); });
  EXPECT_EQ(last.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout)
      << "its report still uses it";
  mayEnd = true;
  removed.get();
  last.get();
  EXPECT_EQ(others.load(), 0) << "they had gone";
  EXPECT_EQ(contents(pathOf(pattern, 0, 4)), header(0, 4) + "slow\n");
}

TEST(ReportSignal, RefusesWhatIsNoSignal) {
  EXPECT_EQ(reportOnSignal(0, "").code(), StatusCode::InvalidArgument);
  EXPECT_EQ(reportOnSignal(4711, "").code(), StatusCode::InvalidArgument);
  EXPECT_EQ(reportOnSignal(SIGKILL, "").code(), StatusCode::InvalidArgument);
}

TEST(ReportSignal, ARefusedSignalChangesNothing) {
  const std::string kept = temporary("kept.%r"), refused = temporary("refused.%r");
  ReporterRegistration reporter({0, 2, [] { return std::string("text\n"); }});
  ASSERT_TRUE(reportOnSignal(SIGUSR2, kept).ok());
  EXPECT_FALSE(reportOnSignal(0, refused).ok());
  EXPECT_FALSE(reportOnSignal(SIGKILL, refused).ok());
  raise(SIGUSR2);
  while (contents(pathOf(kept, 0, 2)).empty() && contents(pathOf(refused, 0, 2)).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(contents(pathOf(kept, 0, 2)), header(0) + "text\n");
}

TEST(ReportSignal, TheEnvironmentNamesTheSignal) {
  EXPECT_EQ(signalNamed("USR1"), SIGUSR1);
  EXPECT_EQ(signalNamed("SIGUSR2"), SIGUSR2);
  EXPECT_EQ(signalNamed("10"), 10);
  for (const char *wrong : {"", "USR9", "usr1", "-1", "99999999999999999999"})
    EXPECT_EQ(signalNamed(wrong), 0) << wrong;
  setenv("OCCL_REPORT_SIGNAL", "nothing", 1);
  EXPECT_EQ(reportAsEnvironmentSays().message(),
            "OCCL_REPORT_SIGNAL=nothing names no signal; use USR1, or a number");
  setenv("OCCL_REPORT_SIGNAL", "", 1);
  EXPECT_TRUE(reportAsEnvironmentSays().ok());
  unsetenv("OCCL_REPORT_SIGNAL");
}

TEST(Output, PathsHaveTheRank) {
  EXPECT_EQ(pathOf("a.%r.json", 3, 8), "a.3.json");
  EXPECT_EQ(pathOf("a.json", 3, 8), "a.json.3");
  EXPECT_EQ(pathOf("a.json", 0, 1), "a.json");
  EXPECT_EQ(pathOf("%%%p%x%", 0, 1), "%" + std::to_string(getpid()) + "%x%");
}

TEST(Output, AppendsAndSaysWhatFails) {
  std::string path = temporary("append");
  EXPECT_TRUE(append(path, "one ").ok());
  EXPECT_TRUE(append(path, "two").ok());
  EXPECT_EQ(contents(path), "one two");
  Status missing = append("/nowhere/file", "text");
  EXPECT_EQ(missing.code(), StatusCode::SystemError);
  EXPECT_NE(missing.message().find("opening '/nowhere/file'"), std::string::npos);
}

} // namespace
} // namespace occl::insight
