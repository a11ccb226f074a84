// What another user puts into /dev/shm under names that are ours harms nobody. Needs root, who can
// become another user.
#include "runtime/control/bootstrap/bootstrap.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kNobody = 65534;
constexpr off_t kControlBytes = 80000; // more or less

bool becomeNobody() { return setgid(kNobody) == 0 && setuid(kNobody) == 0; }

bool canBecomeNobody() {
  pid_t child = fork();
  if (child == 0)
    _exit(becomeNobody() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

class OtherUser : public testing::Test {
protected:
  void SetUp() override {
    if (!canBecomeNobody())
      GTEST_SKIP() << "only root can become another user, and not where there is one user only";
    std::random_device random;
    name = "test-" + std::to_string(random()) + "-" + std::to_string(random());
    path = pathOf(name);
  }
  void TearDown() override {
    if (attacker > 0) {
      kill(attacker, SIGKILL);
      waitpid(attacker, nullptr, 0);
    }
    for (const std::string &made : leftOver)
      if (unlink(made.c_str()) != 0)
        rmdir(made.c_str());
  }

  std::string pathOf(const std::string &object) {
    leftOver.push_back("/dev/shm/occl-0-" + object);
    return leftOver.back();
  }

  /// A child as nobody; it has done prepare() when this returns, and goes on with attack().
  void start(const std::function<bool()> &prepare, const std::function<void()> &attack = pause) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    attacker = fork();
    if (attacker == 0) {
      umask(0);
      bool isPrepared = becomeNobody() && prepare();
      (void)!write(ready[1], isPrepared ? "y" : "n", 1);
      while (isPrepared)
        attack();
      _exit(1);
    }
    char answer = 0;
    ASSERT_EQ(read(ready[0], &answer, 1), 1);
    close(ready[0]);
    close(ready[1]);
    ASSERT_EQ(answer, 'y');
  }

  Status formAlone(const std::string &group) {
    ProcessGroupOptions options;
    options.numRanks = 1;
    options.name = group;
    options.segmentBytes = 10000;
    options.timeout = 30s;
    options.bell = *SharedBell::makeShared();
    return formProcessGroup(options).status();
  }

  /// The start with the name that is taken fails at once and says what is wrong; others do not.
  void expectRefused(const std::string &why) {
    auto begin = std::chrono::steady_clock::now();
    Status status = formAlone(name);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
    Status other = formAlone(name + "-other");
    EXPECT_TRUE(other.ok()) << other.message();
  }

  std::string name, path;
  std::vector<std::string> leftOver;
  pid_t attacker = -1;
};

const char *kBelongs = "belongs to user 65534, expected this process's, 0";

int makeFile(const std::string &path, off_t bytes, mode_t mode) {
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  return file >= 0 && ftruncate(file, bytes) == 0 ? file : -1;
}

TEST_F(OtherUser, AFileOfOurNameIsRefused) {
  start([this] { return makeFile(path, kControlBytes, 0666) >= 0; });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, SoIsOneThatStaysLocked) {
  start([this] {
    int file = makeFile(path, 0, 0666);
    return file >= 0 && flock(file, LOCK_EX) == 0;
  });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, SoIsOneThatMayNotBeRead) {
  start([this] { return makeFile(path, kControlBytes, 0) >= 0; });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, SoIsWhatIsNoFile) {
  start([this] { return mkfifo(path.c_str(), 0666) == 0; });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, SoIsADirectory) {
  start([this] { return mkdir(path.c_str(), 0777) == 0; });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, SoIsALink) {
  std::string target = pathOf(name + "-target");
  ASSERT_GE(makeFile(target, kControlBytes, 0600), 0);
  start([&] { return symlink(target.c_str(), path.c_str()) == 0; });
  expectRefused(kBelongs);
}

TEST_F(OtherUser, AnOwnFileThatOthersCanWriteIsRefused) {
  int file = makeFile(path, kControlBytes, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(fchmod(file, 0666), 0);
  close(file);
  expectRefused("can be accessed by other users");
}

TEST_F(OtherUser, FilesThatGrowAndShrinkKillNobody) {
  std::vector<std::string> paths;
  for (int f = 0; f < 20; ++f)
    paths.push_back(pathOf(name + "-" + std::to_string(f)));
  std::vector<int> files;
  start(
      [&] {
        for (const std::string &each : paths)
          files.push_back(makeFile(each, kControlBytes, 0666));
        return std::ranges::find(files, -1) == files.end();
      },
      [&] {
        for (int file : files)
          (void)!(ftruncate(file, 0) == 0 && ftruncate(file, kControlBytes) == 0);
      });
  for (int round = 0; round < 30; ++round) {
    pid_t victim = fork();
    if (victim == 0) {
      for (int again = 0; again < 10; ++again)
        if (!formAlone(name + "-own").ok())
          _exit(1);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(victim, &status, 0), victim);
    ASSERT_EQ(status, 0) << "signal " << (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
  for (const std::string &each : paths)
    EXPECT_EQ(access(each.c_str(), F_OK), 0) << "what is not ours is not removed";
}

} // namespace
} // namespace occl::bootstrap
