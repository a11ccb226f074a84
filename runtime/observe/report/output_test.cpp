#include "runtime/observe/report/output.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::insight {
namespace {

std::string temporary(const std::string &name) { return ::testing::TempDir() + name; }

std::string contentOf(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Output, PathsHaveRankAndProcess) {
  EXPECT_EQ(pathOf("a", 3, 1), "a");
  EXPECT_EQ(pathOf("a", 3, 4), "a.3");
  EXPECT_EQ(pathOf("%r-%%-b", 3, 4), "3-%-b");
  EXPECT_EQ(pathOf("%p", 0, 1), std::to_string(getpid()));
}

TEST(Output, AppendsToAFile) {
  std::string path = temporary("appended");
  std::string text(100000, 'x');
  EXPECT_TRUE(append(path, text).ok());
  EXPECT_TRUE(append(path, "end").ok());
  EXPECT_EQ(contentOf(path), text + "end");
}

TEST(Output, ReplacesAFile) {
  const std::string path = temporary("replaced");
  for (const char *text : {"a longer text", "text"}) {
    EXPECT_TRUE(replace(path, text).ok());
    EXPECT_EQ(contentOf(path), text);
    EXPECT_NE(access((path + ".new").c_str(), F_OK), 0);
  }
}

/// As of a process that was killed while it wrote.
TEST(Output, ReplacesAFileBesideOneThatWasLeftOver) {
  const std::string path = temporary("beside");
  std::ofstream(path + ".new") << "half of it";
  EXPECT_TRUE(replace(path, "text").ok());
  EXPECT_EQ(contentOf(path), "text");
  EXPECT_NE(access((path + ".new").c_str(), F_OK), 0);
}

/// What has the name may be another user's link to a file of this one, or a file that others read.
TEST(Output, ReplacesNothingByWhatItHasNotMade) {
  const std::string path = temporary("unreplaced"), other = temporary("other");
  const std::string planted = path + ".new";
  std::ofstream(path) << "before";
  std::ofstream(other) << "other";
  const auto expectRefused = [&] {
    const Status written = replace(path, "text");
    EXPECT_EQ(written.code(), StatusCode::SystemError);
    EXPECT_NE(written.message().find(planted), std::string::npos) << written.message();
    EXPECT_EQ(contentOf(path), "before");
    EXPECT_EQ(contentOf(other), "other");
  };
  for (const auto plant : {symlink, link}) {
    ASSERT_EQ(plant(other.c_str(), planted.c_str()), 0);
    expectRefused();
    EXPECT_EQ(access(planted.c_str(), F_OK), 0) << "it is not this process's to remove";
    ASSERT_EQ(unlink(planted.c_str()), 0);
  }
  const std::string nowhere = temporary("nowhere");
  ASSERT_EQ(symlink(nowhere.c_str(), planted.c_str()), 0);
  expectRefused();
  EXPECT_NE(access(nowhere.c_str(), F_OK), 0);
}

TEST(Output, APipeWithoutReaderIsAnError) {
  std::string path = temporary("without-reader");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(append(path, "text").code(), StatusCode::SystemError);
}

TEST(Output, APipeThatNobodyReadsIsAnErrorInTime) {
  std::string path = temporary("unread");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  Status written = append(path, std::string(1 << 20, 'x'));
  EXPECT_EQ(written.code(), StatusCode::SystemError);
  EXPECT_NE(written.message().find("nobody has read it"), std::string::npos) << written.message();
  close(reader);
}

TEST(Output, StandardErrorThatNobodyReadsIsAnErrorInTime) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  Status written = append("", std::string(1 << 20, 'x'));
  dup2(before, STDERR_FILENO);
  EXPECT_EQ(written.code(), StatusCode::SystemError);
  for (int file : {before, ends[0], ends[1]})
    close(file);
}

} // namespace
} // namespace occl::insight
