// OCCL_METRICS for programs of NCCL, most of which destroy no communicator.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::nccl::testing {
namespace {

TEST(Metrics, AreWrittenWhenAProgramExitsThatDestroysNothing) {
  const std::string prefix = std::string(std::getenv("TEST_TMPDIR")) + "/nccl";
  const pid_t child = fork();
  if (child == 0) {
    setenv("OCCL_METRICS", prefix.c_str(), 1);
    auto *ranks = new Ranks(2);
    eachRank(2, [&](int rank) {
      if (!allReduceOnce((*ranks)[rank], ranks->stream(rank)).empty())
        std::abort();
    });
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::ostringstream content;
  // Either rank may be the process's first: they start at the same time.
  const std::string of = "." + std::to_string(child) + ".";
  for (const char *name : {"0_1", "0_2", "1_1", "1_2"})
    if (std::ifstream file(prefix + "." + name[0] + of + name[2] + ".prom"); file)
      content << file.rdbuf();
  for (const char *labels : {"rank=\"0\",size=\"2\"", "rank=\"1\",size=\"2\""})
    EXPECT_NE(content.str().find("\noccl_submitted_total{" + std::string(labels)),
              std::string::npos)
        << content.str();
}

} // namespace
} // namespace occl::nccl::testing
