// Drives occl-run --hosts as a user does, with a start program that stands for ssh: as that it
// gives the command to a shell, here on the same machine.
#include "plan/io/writer.h"
#include "plan/testing/example_plans.h"
#include "tools/occl-run/testing.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace {

using namespace std::chrono_literals;
using occl::run::testing::contains;
using occl::run::testing::occlRun;
using occl::run::testing::Result;
using occl::run::testing::scratchFile;
using occl::run::testing::signalOcclRun;

class Hosts : public ::testing::Test {
protected:
  void SetUp() override {
    const std::string path = scratchFile("rsh");
    std::ofstream(path)
        << "#!/bin/sh\n"
           "host=$1; shift\n"
           "case $host in\n"
           "unreachable) echo 'connect to host: No route to host' >&2; exit 255;;\n"
           "mute) exec sleep 1000;;\n"
           "talkative) echo 'Welcome!';;\n"
           "older) printf '\\n# OCCL-RUN AGENT #\\n'\n"
           "  printf '\\3\\0\\0\\0\\0\\0\\0\\0\\4\\0\\0\\0000\\0001\\0'; exec cat;;\n"
           "deaf) exec <&-; printf '\\n# OCCL-RUN AGENT #\\n'\n" // ends before it reads its job
           "  printf '\\3\\0\\0\\0\\0\\0\\0\\0\\6\\0\\0\\0002\\0001\\0001\\0'; sleep 1; exit 3;;\n"
           "esac\n"
           "exec sh -c \"$*\"\n";
    chmod(path.c_str(), 0755);
    setenv("OCCL_RUN_RSH", path.c_str(), 1);
  }
};

TEST_F(Hosts, GivesEachRankItsPlace) {
  const Result result =
      occlRun("--hosts a,b -n 3 --tag-output -- sh -c 'echo $OCCL_RANK of $OCCL_SIZE on "
              "${OCCL_HOSTID##*-} ${#OCCL_SECRET}; cat'");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const char *line : {"[0] 0 of 3 on 0 64\n", "[1] 1 of 3 on 0 64\n", "[2] 2 of 3 on 1 64\n"})
    EXPECT_TRUE(contains(result, line)) << result.output;
}

TEST_F(Hosts, GivesEachRankWhatTorchrunDoes) {
  const Result result =
      occlRun("--hosts a,b -n 3 --address 10.1.2.3 --tag-output -- sh -c 'echo $RANK of "
              "$WORLD_SIZE, here $LOCAL_RANK of $LOCAL_WORLD_SIZE, $MASTER_ADDR "
              "$(test $MASTER_PORT != ${OCCL_COMM_ID##*:} && echo another port)'");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const char *line : {"[0] 0 of 3, here 0 of 2, 10.1.2.3 another port\n",
                           "[1] 1 of 3, here 1 of 2, 10.1.2.3 another port\n",
                           "[2] 2 of 3, here 0 of 1, 10.1.2.3 another port\n"})
    EXPECT_TRUE(contains(result, line)) << result.output;
}

TEST_F(Hosts, SlotsSayHowManyRanks) {
  const std::string command = " --tag-output sh -c 'echo ${OCCL_HOSTID##*-}'";
  Result result = occlRun("--hosts a:1,b:3" + command);
  EXPECT_TRUE(contains(result, "[0] 0\n") && contains(result, "[1] 1\n") &&
              contains(result, "[3] 1\n"))
      << result.output;
  result = occlRun("--hosts a:1,b:3 -n 2" + command);
  EXPECT_TRUE(contains(result, "[1] 1\n") && !contains(result, "[2]")) << result.output;
}

TEST_F(Hosts, SecretsDifferAndAreOnNoCommandLine) {
  const std::string look = scratchFile("look.py");
  std::ofstream(look) << "import glob, os\n"
                         "secret = os.environ['OCCL_SECRET']\n"
                         "for path in glob.glob('/proc/[0-9]*/cmdline'):\n"
                         "  try:\n"
                         "    if secret in open(path, errors='replace').read():\n"
                         "      print('seen')\n"
                         "  except OSError:\n"
                         "    pass\n"
                         "print(secret)\n";
  const Result first = occlRun("--hosts a,b -n 2 -- python3 " + look);
  const Result second = occlRun("--hosts a,b -n 2 -- python3 " + look);
  EXPECT_EQ(first.output.size(), 130u) << first.output;
  EXPECT_EQ(first.output.substr(0, 65), first.output.substr(65));
  EXPECT_NE(first.output, second.output);
}

TEST_F(Hosts, PassesVariablesAndFolder) {
  setenv("OCCL_STATS", "somewhere", 1);
  setenv("MINE", "a 'quoted' value", 1);
  const Result result = occlRun("--hosts a,b -n 2 --wdir / -x MINE -x OTHER=2 --tag-output -- sh "
                                "-c 'echo $OCCL_STATS, $MINE, $OTHER; pwd; cat'");
  unsetenv("OCCL_STATS");
  for (const char *line : {"[0] somewhere, a 'quoted' value, 2\n", "[1] /\n"})
    EXPECT_TRUE(contains(result, line)) << result.output;
  EXPECT_TRUE(contains(occlRun("--hosts a,b -n 2 -x NOT_SET true"), "NOT_SET"));
  const Result nowhere = occlRun("--hosts a,b -n 2 --wdir /no/where true");
  EXPECT_TRUE(contains(nowhere, "cannot work in '/no/where'")) << nowhere.output;
}

TEST_F(Hosts, AnUnreachableHostIsOneErrorAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const Result result = occlRun("--hosts a,unreachable -n 4 sleep 100");
  EXPECT_EQ(result.status, 127);
  EXPECT_TRUE(contains(result, "unreachable: connect to host: No route to host")) << result.output;
  EXPECT_TRUE(contains(result, "cannot start ranks 2 to 3 on host 'unreachable'")) << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(Hosts, AHostThatDoesNotAnswerIsAnErrorInTime) {
  const auto begin = std::chrono::steady_clock::now();
  const Result result = occlRun("--hosts a,mute -n 2 --start-timeout 500 sleep 100");
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(result.output,
            "occl-run: host 'mute' did not answer within 500 ms; see --start-timeout\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(Hosts, WithoutOcclThereTheErrorSaysSo) {
  const Result result = occlRun("--hosts a,b -n 2 --launch-agent /no/occl-run true");
  EXPECT_EQ(result.status, 127);
  EXPECT_TRUE(contains(result, "is OCCL there as /no/occl-run is?")) << result.output;
}

TEST_F(Hosts, AnotherVersionIsNamed) {
  const Result result = occlRun("--hosts a,older -n 2 sleep 100");
  EXPECT_EQ(result.status, 127);
  EXPECT_TRUE(contains(result, "host 'older' has another version of occl-run")) << result.output;
}

TEST_F(Hosts, AnAgentThatEndsBeforeItHasReadItsJobIsALostHost) {
  const Result result = occlRun("--hosts a,deaf -n 2 sleep 100");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result, "lost host 'deaf' with rank 1: ") &&
              contains(result, "ended with exit status 3"))
      << result.output;
}

TEST_F(Hosts, LoginShellsMaySaySomething) {
  const Result result = occlRun("--hosts talkative,b -n 2 echo fine");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(contains(result, "talkative: Welcome!\n")) << result.output;
  EXPECT_TRUE(contains(result, "fine\n")) << result.output;
}

TEST_F(Hosts, AProgramThatIsNotThereEndsAll) {
  const Result result = occlRun("--hosts a,b -n 2 /no/such/program");
  EXPECT_EQ(result.status, 127);
  EXPECT_TRUE(contains(result, "cannot run '/no/such/program': No such file or directory"))
      << result.output;
}

TEST_F(Hosts, TheFirstFailureEndsRanksOnOtherHosts) {
  const auto begin = std::chrono::steady_clock::now();
  const Result result = occlRun(
      "--hosts a,b -n 4 --grace 200 sh -c 'if [ $OCCL_RANK = 3 ]; then kill -9 $$; fi; sleep 100'");
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_TRUE(contains(result, "rank 3 (process") &&
              contains(result, "on b) was killed by signal 9"))
      << result.output;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

/// As if the machine went away: its agent is killed.
TEST_F(Hosts, ALostHostIsNamedAndEndsTheOthers) {
  const Result result = occlRun("--hosts a,b -n 4 --grace 200 sh -c 'if [ $OCCL_RANK = 2 ]; then "
                                "kill -9 $PPID; fi; sleep 100'");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result, "lost host 'b' with ranks 2 to 3")) << result.output;
}

TEST_F(Hosts, AnInterruptEndsAllRanks) {
  EXPECT_EQ(signalOcclRun(SIGINT, {"--hosts", "a,b"}, 4, scratchFile("interrupted")), 128 + SIGINT);
}

TEST_F(Hosts, NoRankOutlivesOcclRun) {
  EXPECT_EQ(signalOcclRun(SIGKILL, {"--hosts", "a,b"}, 4, scratchFile("killed")), -SIGKILL);
}

TEST_F(Hosts, MuchOutputComesWhole) {
  const Result result = occlRun("--hosts a,b -n 2 --tag-output -- seq 1 50000");
  EXPECT_EQ(result.status, 0);
  for (const char *rank : {"[0] ", "[1] "}) {
    size_t lines = 0;
    for (size_t at = 0; (at = result.output.find(rank, at)) != std::string::npos; ++at)
      ++lines;
    EXPECT_EQ(lines, 50000u);
  }
}

TEST_F(Hosts, RunsAPlanAndChecksIt) {
  const std::string path = scratchFile("ring.plan.json");
  ASSERT_TRUE(occl::plan::writePlanFile(occl::plan::testing::ringAllReduce(4), path).isOk());
  const Result result = occlRun("--hosts a,b --iterations 3 --count 10007 --plan " + path);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(contains(result, "time       median")) << result.output;
  EXPECT_TRUE(contains(result, "check      0 wrong elements")) << result.output;
  EXPECT_TRUE(contains(occlRun("--hosts a,b --threads --plan " + path), "--threads"));
  EXPECT_TRUE(contains(occlRun("--hosts a,b --trace x --plan " + path), "--trace"));
}

TEST_F(Hosts, RefusesWrongHosts) {
  const Result none = occlRun("-n 2 --hosts '' true");
  EXPECT_EQ(none.status, 2) << none.output;
  EXPECT_TRUE(contains(none, "--hosts: it names no host")) << none.output;
  for (const char *hosts : {"a:0,b", "a,-oProxyCommand=x", "a:x", "[::1", "a,,b", "a:1025"}) {
    const Result result = occlRun(std::string("-n 2 --hosts '") + hosts + "' true");
    EXPECT_EQ(result.status, 2) << hosts << ": " << result.output;
    EXPECT_TRUE(contains(result, "is no host")) << hosts << ": " << result.output;
  }
  const Result result = occlRun("--hosts a:1,b:2 -n 4 true");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "occl-run: there are 3 slots for 4 ranks\n");
}

} // namespace
