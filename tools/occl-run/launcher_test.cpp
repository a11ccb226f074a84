// Drives the program itself, as a user does.
#include "tools/occl-run/testing.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace {

using namespace std::chrono_literals;
using occl::run::testing::awaitLines;
using occl::run::testing::contains;
using occl::run::testing::occlRun;
using occl::run::testing::Result;
using occl::run::testing::scratchFile;
using occl::run::testing::signalOcclRun;

TEST(Launcher, givesEachRankItsPlace) {
  Result result = occlRun("-n 3 --tag-output -- sh -c 'echo $OCCL_RANK of $OCCL_SIZE; cat'");
  EXPECT_EQ(result.status, 0);
  for (const char *line : {"[0] 0 of 3\n", "[1] 1 of 3\n", "[2] 2 of 3\n"})
    EXPECT_TRUE(contains(result, line)) << result.output;
}

TEST(Launcher, givesEachRankWhatTorchrunDoes) {
  Result result = occlRun("-n 2 --tag-output -- sh -c 'echo $RANK of $WORLD_SIZE, here $LOCAL_RANK "
                          "of $LOCAL_WORLD_SIZE, $MASTER_ADDR ${MASTER_PORT:+port}'");
  EXPECT_EQ(result.status, 0);
  for (const char *line :
       {"[0] 0 of 2, here 0 of 2, 127.0.0.1 port\n", "[1] 1 of 2, here 1 of 2, 127.0.0.1 port\n"})
    EXPECT_TRUE(contains(result, line)) << result.output;
}

TEST(Launcher, allRanksHaveOneJobNameAndRunsDiffer) {
  Result first = occlRun("-n 2 sh -c 'echo $OCCL_JOB'");
  Result second = occlRun("-n 2 sh -c 'echo $OCCL_JOB'");
  size_t half = first.output.size() / 2;
  EXPECT_EQ(first.output.substr(0, half), first.output.substr(half));
  EXPECT_NE(first.output, second.output);
}

TEST(Launcher, tagsAnUnfinishedLineToo) {
  EXPECT_EQ(occlRun("-n 1 --tag-output printf 'a\\nb'").output, "[0] a\n[0] b\n");
}

TEST(Launcher, passesTheProgramsOwnOptions) {
  EXPECT_EQ(occlRun("-n 1 -- echo -n --help --ranks").output, "--help --ranks");
  EXPECT_EQ(occlRun("-n 1 echo -n --help").output, "--help");
}

TEST(Launcher, passesTheRequestForAReportOn) {
  std::string file = scratchFile("asked"), script = scratchFile("asked.py");
  // Not a shell, which cannot trap what is ignored at its start.
  std::ofstream(script) << "import os, signal, time\n"
                           "def asked(*_):\n"
                           "  with open('"
                        << file
                        << "', 'a') as out:\n"
                           "    print(os.environ['OCCL_REPORT_SIGNAL'], file=out)\n"
                           "  os._exit(0)\n"
                           "signal.signal(signal.SIGUSR1, asked)\n"
                           "os.kill(os.getppid(), signal.SIGUSR1)\n"
                           // A signal right before a sleep does not end it.
                           "for _ in range(600):\n"
                           "  time.sleep(0.1)\n";
  Result result = occlRun("-n 2 -- python3 " + script);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(awaitLines(file, 2), (std::vector<std::string>{"USR1", "USR1"}));
}

TEST(Launcher, aRequestForAReportEndsNobody) {
  Result result = occlRun("-n 2 -- sh -c 'kill -USR1 $PPID; sleep 0.3; echo alive'");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "alive\nalive\n");
}

TEST(Launcher, returnsTheFirstFailureAndSaysWho) {
  Result result = occlRun("-n 3 --grace 10000 sh -c 'if [ $OCCL_RANK = 1 ]; then exit 5; fi'");
  EXPECT_EQ(result.status, 5);
  EXPECT_TRUE(contains(result, "rank 1 (process")) << result.output;
  EXPECT_TRUE(contains(result, "ended with exit status 5")) << result.output;
}

TEST(Launcher, blamesWhoWasKilledRatherThanWhoEndedBecauseOfIt) {
  std::string heard = scratchFile("heard");
  Result result =
      occlRun("-n 3 --grace 10000 sh -c 'case $OCCL_RANK in "
              "1) touch " +
              heard + "; exit 1;; 2) while ! [ -e " + heard + " ]; do :; done; kill -9 $$;; esac'");
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_TRUE(contains(result, "rank 2 (process")) << result.output;
  EXPECT_FALSE(contains(result, "exit status")) << result.output;
}

TEST(Launcher, saysBySignalAndEndsTheOthersAfterTheGraceTime) {
  auto begin = std::chrono::steady_clock::now();
  Result result =
      occlRun("-n 3 --grace 200 sh -c 'if [ $OCCL_RANK = 2 ]; then kill -9 $$; fi; sleep 100'");
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_TRUE(contains(result, "rank 2 (process")) << result.output;
  EXPECT_TRUE(contains(result, "killed by signal 9 (Killed)")) << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Launcher, killsWhatIgnoresTheRequestToEnd) {
  auto begin = std::chrono::steady_clock::now();
  Result result =
      occlRun("-n 2 --grace 100 sh -c 'trap \"\" TERM; if [ $OCCL_RANK = 0 ]; then exit 3; "
              "fi; while :; do sleep 0.1; done'");
  EXPECT_EQ(result.status, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Launcher, reportsAProgramThatIsNotThere) {
  Result result = occlRun("-n 4 /no/such/program");
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(result.output, "occl-run: cannot run '/no/such/program': No such file or directory\n");
}

TEST(Launcher, refusesWrongUse) {
  EXPECT_NE(occlRun("-n 0 true").status, 0);
  EXPECT_NE(occlRun("true").status, 0);
  EXPECT_EQ(occlRun("-n 1").status, 2);
  EXPECT_EQ(occlRun("--help").status, 0);
}

TEST(Launcher, passesSignalsOn) {
  EXPECT_EQ(signalOcclRun(SIGTERM, {}, 2, scratchFile("term")), 128 + SIGTERM);
}

TEST(Launcher, leavesNoOrphansWhenKilled) {
  EXPECT_EQ(signalOcclRun(SIGKILL, {}, 2, scratchFile("kill")), -SIGKILL);
}

} // namespace
