#include "runtime/control/shm/lockable_file.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

/// Another descriptor of the file at `path`.
std::unique_ptr<LockableFile> openAt(const std::string &path) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  EXPECT_EQ(fstat(file.get(), &info), 0);
  return std::make_unique<LockableFile>(std::move(file), info);
}

/// A file that this process and its children open.
class HeldFile : public testing::Test {
protected:
  HeldFile()
      : original(memfd_create("held", MFD_CLOEXEC)),
        path("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(original.get())),
        file(openAt(path)) {
    EXPECT_EQ(pipe(ready.data()), 0);
    EXPECT_EQ(pipe(goOn.data()), 0);
  }
  ~HeldFile() override {
    for (int end : {ready[0], ready[1], goOn[0], goOn[1]})
      close(end);
  }

  /// A child that runs body(), which has to call say(); returns when it has.
  pid_t start(const std::function<void()> &body) {
    pid_t child = fork();
    if (child == 0) {
      body();
      pause();
      _exit(0);
    }
    hear();
    return child;
  }
  /// What a child says; fails if it says nothing.
  void hear() const {
    pollfd said{ready[0], POLLIN, 0};
    ASSERT_EQ(poll(&said, 1, 30000), 1);
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
  }
  void say() const { (void)!write(ready[1], "x", 1); }
  void awaitWord() const {
    char byte;
    (void)!read(goOn[0], &byte, 1);
  }
  /// Ends awaitWord() of a child and waits for what it says next.
  void letGoOn() const {
    EXPECT_EQ(write(goOn[1], "x", 1), 1);
    hear();
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
  /// The end of a process takes a moment.
  bool isLetGo(uint32_t byte) const {
    for (int look = 0; look < 1000 && file->isHeldByOthers(byte); ++look)
      std::this_thread::sleep_for(10ms);
    return !file->isHeldByOthers(byte);
  }

  const Descriptor original; // stays open, and nothing is held when it is closed
  const std::string path;
  std::unique_ptr<LockableFile> file;
  std::array<int, 2> ready, goOn;
};

TEST_F(HeldFile, AByteIsHeldUntilItsHolderIsKilledEvenIfNobodyLooks) {
  EXPECT_FALSE(file->isHeldByOthers(3));
  pid_t child = start([&] {
    auto own = openAt(path);
    if (own->hold(3) == 0)
      say();
    pause();
  });
  EXPECT_TRUE(file->isHeldByOthers(3));
  EXPECT_FALSE(file->isHeldByOthers(2));
  EXPECT_EQ(openAt(path)->hold(3), EAGAIN);
  kill(child, SIGKILL);
  EXPECT_TRUE(isLetGo(3)); // it has not been reaped
  end(child);
}

TEST_F(HeldFile, ToAskNeedsNoDescriptor) {
  pid_t child = start([&] {
    auto own = openAt(path);
    if (own->hold(0) == 0)
      say();
    pause();
  });
  rlimit before, none;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(open("/dev/null", O_RDONLY), -1);
  EXPECT_TRUE(file->isHeldByOthers(0));
  EXPECT_FALSE(file->isHeldByOthers(1));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  end(child);
}

TEST_F(HeldFile, ALockThatTheSystemDoesNotShowCountsAsHeld) {
  LockableFile none;
  EXPECT_TRUE(none.isHeldByOthers(0));
}

TEST_F(HeldFile, ItOutlivesTheMainThread) {
  pid_t child = start([&] {
    auto own = openAt(path);
    if (own->hold(0) == 0)
      std::thread([this] {
        std::this_thread::sleep_for(100ms); // until main has ended
        say();
        pause();
      }).detach();
    syscall(SYS_exit, 0); // as pthread_exit, without unwinding the test
  });
  EXPECT_TRUE(file->isHeldByOthers(0));
  kill(child, SIGKILL);
  EXPECT_TRUE(isLetGo(0));
  end(child);
}

/// A program may have the library twice: in its own binary, and in a plugin.
TEST_F(HeldFile, AFileOfAnotherCopyOfTheLibraryIsNotLetGo) {
  const auto range = [] {
    struct flock byte {};
    byte.l_type = F_WRLCK;
    byte.l_whence = SEEK_SET;
    byte.l_start = 5;
    byte.l_len = 1;
    return byte;
  };
  const auto isHeld = [&] {
    const pid_t child = fork();
    if (child == 0) {
      struct flock byte = range();
      _exit(fcntl(original.get(), F_GETLK, &byte) == 0 && byte.l_type != F_UNLCK ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 1;
  };
  // Not through this copy, which so knows nothing of it.
  struct flock byte = range();
  ASSERT_EQ(fcntl(original.get(), F_SETLK, &byte), 0);
  openAt(path).reset();
  EXPECT_TRUE(isHeld()) << "after a look at the file";
  {
    auto first = openAt(path), second = openAt(path);
    EXPECT_EQ(first->hold(3), 0);
  }
  EXPECT_TRUE(isHeld()) << "after a rank of this copy";
}

TEST_F(HeldFile, AForkedChildDoesNotHoldItForItsParent) {
  pid_t child = start([&] {
    auto own = openAt(path), other = openAt(path);
    if (own->hold(0) == 0 && fork() == 0) {
      other.reset(); // what it closes changes nothing either
      say();
      awaitWord();
      say();
      _exit(0);
    }
    pause();
  });
  EXPECT_TRUE(file->isHeldByOthers(0));
  kill(child, SIGKILL);
  EXPECT_TRUE(isLetGo(0));
  letGoOn(); // the grandchild has lived until now
  end(child);
}

TEST_F(HeldFile, ExecutingAnotherProgramEndsIt) {
  pid_t child = start([&] {
    auto own = openAt(path);
    if (own->hold(0) != 0)
      _exit(1);
    say();
    awaitWord();
    say();
    execl("/bin/sleep", "sleep", "1000", nullptr);
  });
  EXPECT_TRUE(file->isHeldByOthers(0));
  letGoOn();
  EXPECT_TRUE(isLetGo(0));
  EXPECT_EQ(kill(child, 0), 0);
  end(child);
}

TEST_F(HeldFile, OtherDescriptorsOfTheFileMayBeClosed) {
  pid_t child = start([&] {
    auto first = openAt(path), second = openAt(path);
    if (first->hold(0) != 0 || second->hold(1) != 0)
      _exit(1);
    openAt(path).reset();
    say();
    awaitWord();
    first.reset();
    say();
    awaitWord();
    auto files = [] {
      int count = 0;
      for (int number = 3; number < 200; ++number)
        count += fcntl(number, F_GETFD) >= 0;
      return count;
    };
    int before = files();
    second.reset();
    if (before - files() == 3) // its own, and the two that were kept open
      say();
    pause();
  });
  EXPECT_TRUE(file->isHeldByOthers(0));
  EXPECT_TRUE(file->isHeldByOthers(1));
  letGoOn();
  EXPECT_FALSE(file->isHeldByOthers(0));
  EXPECT_TRUE(file->isHeldByOthers(1));
  letGoOn();
  EXPECT_FALSE(file->isHeldByOthers(1));
  end(child);
}

} // namespace
} // namespace occl::bootstrap
