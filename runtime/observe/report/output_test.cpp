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
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text + "end");
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
