// One rank calls a collective, the other starts it under an id: two sequences, in each of which a
// rank is missing. It is named to both, and a deadline or an abort ends the wait of both.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_insight.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kId = 7;
/// As long as OCCL_LONG_WAIT_MS below: a busy machine has run both ranks' thread blocks by then.
constexpr uint32_t kDeadlineMs = 3000;

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

struct Ended {
  occlResult_t result = occlSuccess;
  std::string text;
};

/// Rank 0 calls, rank 1 starts; with these deadlines, by rank, until both have ended.
struct Pair {
  explicit Pair(occlConfig_t config = OCCL_CONFIG_INITIALIZER) : ranks(2, config) {}

  void run(uint32_t callMs, uint32_t startMs) {
    ranks.run([&](uint32_t r) {
      occlCall_t call = job.call(r);
      call.timeoutMs = r == 0 ? callMs : startMs;
      call.id = kId; // occlCall has no use for it
      occlRequest_t request = 0;
      occlResult_t result = r == 0 ? occlCall(ranks[0], &call, nullptr)
                                   : occlStart(ranks[1], &call, nullptr, nullptr, &request);
      if (r == 1 && result == occlSuccess)
        result = occlWait(ranks[1], request);
      ended[r] = {result, occlGetLastError()};
    });
  }

  Ranks ranks;
  Job job{kId, handleOf(plan::testing::oneShotAllReduce(2)), 100};
  Ended ended[2];
};

/// What both ranks are told when the deadline of this one has passed.
bool namesTheOther(const std::string &text, uint32_t rank) {
  return has(text, rank == 0
                       ? ", call 0 did not end on rank 0 before its deadline: "
                       : " (id 7), invocation 0 did not end on rank 1 before its deadline: ") &&
         has(text, "waits for rank " + std::to_string(1 - rank) + ", which has not submitted it");
}

TEST(OtherWay, ADeadlineOfEitherIsAnErrorOnBothThatNamesTheOther) {
  for (const uint32_t hasDeadline : {0u, 1u}) {
    Pair pair;
    pair.run(hasDeadline == 0 ? kDeadlineMs : 0, hasDeadline == 1 ? kDeadlineMs : 0);
    for (const uint32_t r : {0u, 1u}) {
      EXPECT_EQ(pair.ended[r].result, occlTimeout) << pair.ended[r].text;
      EXPECT_TRUE(namesTheOther(pair.ended[r].text, hasDeadline)) << pair.ended[r].text;
      const std::string why = occlCommGetLastError(pair.ranks[r]);
      EXPECT_TRUE(namesTheOther(why, hasDeadline)) << why;
    }
  }
}

/// Of both ranks, so whichever passes first is the one that both are told.
TEST(OtherWay, TheCommunicatorsDeadlineIsTheSameErrorOnBoth) {
  Pair pair(withTimeout(kDeadlineMs));
  pair.run(0, 0);
  const std::string why = occlCommGetLastError(pair.ranks[0]);
  EXPECT_TRUE(namesTheOther(why, 0) || namesTheOther(why, 1)) << why;
  EXPECT_EQ(why, occlCommGetLastError(pair.ranks[1]));
  for (const Ended &one : pair.ended) {
    EXPECT_EQ(one.result, occlTimeout) << one.text;
    EXPECT_TRUE(has(one.text, why)) << one.text;
  }
}

/// Read once, by the first wait that somebody looks at, so it is set before all tests.
class SoonLong : public ::testing::Environment {
  void SetUp() override { setenv("OCCL_LONG_WAIT_MS", "3000", 1); }
};
const ::testing::Environment *const kSoonLong = ::testing::AddGlobalTestEnvironment(new SoonLong);

/// What is written to standard error, readable at any time.
class StandardError {
public:
  StandardError() : path(std::string(std::getenv("TEST_TMPDIR")) + "/stderr"), before(dup(2)) {
    const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    dup2(file, 2);
    close(file);
  }
  ~StandardError() {
    dup2(before, 2);
    close(before);
    std::cerr << text();
  }
  StandardError(const StandardError &) = delete;
  StandardError &operator=(const StandardError &) = delete;

  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }

private:
  std::string path;
  int before;
};

/// Asks until the text has all parts; half a minute later that is a failure.
template <typename Ask> std::string await(const Ask &ask, const std::vector<std::string> &parts) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  for (;;) {
    std::string text = ask();
    const bool isThere =
        std::ranges::all_of(parts, [&](const std::string &part) { return has(text, part); });
    if (isThere || std::chrono::steady_clock::now() > end) {
      EXPECT_TRUE(isThere) << text;
      return text;
    }
    std::this_thread::sleep_for(10ms);
  }
}

/// Without deadlines both wait.
class OtherWayWithoutDeadline : public ::testing::TestWithParam<uint32_t> {
protected:
  void awaitReports() const {
    for (const uint32_t r : {0u, 1u})
      await([&] { return reportOf(pair.ranks[r]); },
            {"rank 0 waits for rank 1 (its submission) in collective '",
             "rank 1 waits for rank 0 (its submission) in collective '",
             "', invocation 0: not submitted by rank 1\n",
             "' (id 7), invocation 0: not submitted by rank 0\n"});
  }

  static void awaitLongWaits(const StandardError &error) {
    await([&] { return error.text(); },
          {", call 0 has been in flight on rank 0 for 3000 ms and goes on: ",
           " (id 7), invocation 0 has been in flight on rank 1 for 3000 ms and goes on: ",
           "waits for rank 1, which has not submitted it",
           "waits for rank 0, which has not submitted it"});
  }

  /// Each rank has submitted one collective, of the sequence that the other one lacks.
  void expectCounters() const {
    for (const uint32_t r : {0u, 1u}) {
      occlStats_t stats{};
      stats.size = sizeof stats;
      EXPECT_EQ(occlCommGetStats(pair.ranks[r], &stats), occlSuccess) << occlGetLastError();
      EXPECT_EQ(stats.submitted, 1u);
      EXPECT_EQ(stats.completed + stats.failed, 0u);
      std::string metrics(1 << 16, '\0');
      size_t length = 0;
      EXPECT_EQ(occlCommGetMetrics(pair.ranks[r], nullptr, metrics.data(), metrics.size(), &length),
                occlSuccess);
      const std::string labels = "{rank=\"" + std::to_string(r) + "\",size=\"2\",id=\"";
      for (const std::string id : {"calls", "7"})
        EXPECT_EQ(has(metrics, "occl_submitted_total" + labels + id + "\"} 1\n"),
                  (id == "calls") == (r == 0))
            << id << " on rank " << r << ":\n"
            << metrics.c_str();
    }
  }

  Pair pair;
};

TEST_P(OtherWayWithoutDeadline, BothAreNamedAndAnAbortOfEitherEndsBoth) {
  const uint32_t aborts = GetParam();
  const StandardError error;
  std::thread observer([&] {
    awaitReports();
    awaitLongWaits(error);
    expectCounters();
    EXPECT_EQ(occlCommAbort(pair.ranks[aborts]), occlSuccess);
  });
  pair.run(0, 0);
  observer.join();
  for (const Ended &one : pair.ended) {
    EXPECT_EQ(one.result, occlAborted) << one.text;
    EXPECT_TRUE(has(one.text, "rank " + std::to_string(aborts))) << one.text;
  }
}

INSTANTIATE_TEST_SUITE_P(By, OtherWayWithoutDeadline, ::testing::Values(0u, 1u));

} // namespace
} // namespace occl::communicator::testing
