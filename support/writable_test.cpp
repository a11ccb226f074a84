// Whether a file can be written is found out without a trace of the question.
#include "support/writable.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>

namespace occl {
namespace {

namespace fs = std::filesystem;

class Writable : public ::testing::Test {
protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  std::string in(const std::string &name) const { return (folder / name).string(); }
  size_t numFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
  }

  const fs::path folder = fs::path(std::getenv("TEST_TMPDIR")) / "writable";
};

TEST_F(Writable, AFileThatIsNotThereIsNotMade) {
  EXPECT_EQ(whyNotWritable(in("new")), "");
  EXPECT_EQ(whyNotWritable("new-here"), "");
  EXPECT_EQ(numFiles(), 0u);
  EXPECT_FALSE(fs::exists("new-here"));
}

TEST_F(Writable, AFileThatIsThereKeepsItsContent) {
  std::ofstream(in("old")) << "content";
  EXPECT_EQ(whyNotWritable(in("old")), "");
  EXPECT_EQ(fs::file_size(in("old")), 7u);
}

TEST_F(Writable, APipeWithoutReaderIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  EXPECT_EQ(whyNotWritable(in("pipe")), "");
  EXPECT_EQ(whyNotWritable("/dev/null"), "");
}

TEST_F(Writable, FilesThatCannotBeWrittenHaveAReason) {
  std::ofstream(in("file")) << "content";
  EXPECT_EQ(whyNotWritable(""), "No such file or directory");
  EXPECT_EQ(whyNotWritable(folder.string()), "it is a directory");
  EXPECT_EQ(whyNotWritable(in("none/")), "it is a directory");
  EXPECT_EQ(whyNotWritable(in("none/new")), "No such file or directory");
  EXPECT_EQ(whyNotWritable(in("file/new")), "Not a directory");
  EXPECT_EQ(whyNotWritable(in(std::string(300, 'x'))), "File name too long");
}

TEST_F(Writable, ALinkIsFollowed) {
  fs::create_symlink("target", in("dangling"));
  fs::create_symlink("dangling", in("to-the-link"));
  fs::create_symlink("none/target", in("nowhere"));
  fs::create_symlink("around", in("around"));
  EXPECT_EQ(whyNotWritable(in("to-the-link")), "");
  EXPECT_EQ(whyNotWritable(in("nowhere")), "No such file or directory");
  EXPECT_EQ(whyNotWritable(in("around")), "Too many levels of symbolic links");
  EXPECT_EQ(linkTarget(in("to-the-link")), in("target"));
  EXPECT_EQ(linkTarget(in("target")), in("target"));
  EXPECT_FALSE(fs::exists(in("target")));
}

} // namespace
} // namespace occl
