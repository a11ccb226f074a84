// Where there is no shared memory to be had, setting up says so; nobody is killed by it. The linker
// (--wrap) leads posix_fallocate here.
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/shm/mapping.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// So many calls end with EINTR before any reaches the system.
int interruptions = 0;

} // namespace

extern "C" {
int __real_posix_fallocate(int file, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int file, off_t offset, off_t bytes) {
  if (interruptions > 0 && interruptions-- > 0)
    return EINTR;
  return __real_posix_fallocate(file, offset, bytes);
}
}

namespace occl::bootstrap {
namespace {

constexpr int kAsExpected = 7, kNotPermitted = 8; // exit statuses of a child

/// What becomes of `body` in a child: its exit status, or minus the signal that ended it.
int inChild(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0)
    _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// A group of one rank.
Status formAlone() {
  auto bell = SharedBell::makeShared();
  if (!bell.ok())
    return bell.status();
  ProcessGroupOptions options;
  options.numRanks = 1;
  options.name = "alone-" + std::to_string(getpid());
  options.segmentBytes = 1 << 20;
  options.bell = *bell;
  return formProcessGroup(options).status();
}

int exitFor(const Status &status, const std::string &part) {
  if (status.code() == StatusCode::SystemError && status.message().find(part) != std::string::npos)
    return kAsExpected;
  std::fprintf(stderr, "got code %d: %s\n", static_cast<int>(status.code()),
               status.message().c_str());
  return 1;
}

bool writeFile(const char *path, const std::string &text) {
  int file = open(path, O_WRONLY);
  bool written = file >= 0 && write(file, text.data(), text.size()) == ssize_t(text.size());
  close(file);
  return written;
}

/// This process sees a /dev/shm of its own with so many bytes. False if it may not.
bool withOwnSharedMemory(const char *bytes) {
  const std::string user = std::to_string(getuid()), group = std::to_string(getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return false;
  writeFile("/proc/self/setgroups", "deny");
  return writeFile("/proc/self/uid_map", "0 " + user + " 1") &&
         writeFile("/proc/self/gid_map", "0 " + group + " 1") &&
         mount("shm", "/dev/shm", "tmpfs", 0, bytes) == 0;
}

TEST(SharedMemory, AFullOneIsAnErrorAndLeavesNothing) {
  int exit = inChild([] {
    if (!withOwnSharedMemory("size=8k"))
      return kNotPermitted;
    int refused = exitFor(formAlone(), "bytes of shared memory /dev/shm/occl-0-alone-");
    std::string name = "/dev/shm/occl-0-alone-" + std::to_string(getpid());
    return access(name.c_str(), F_OK) == 0 ? 2 : refused;
  });
  if (exit == kNotPermitted)
    GTEST_SKIP() << "no namespaces of their own for users here";
  EXPECT_EQ(exit, kAsExpected);
}

TEST(SharedMemory, ThatIsLargeEnoughIsUsed) {
  int exit = inChild([] {
    if (!withOwnSharedMemory("size=1m"))
      return kNotPermitted;
    return formAlone().ok() ? kAsExpected : 1;
  });
  if (exit == kNotPermitted)
    GTEST_SKIP() << "no namespaces of their own for users here";
  EXPECT_EQ(exit, kAsExpected);
}

TEST(SharedMemory, ALimitOnTheSizeOfFilesIsAnError) {
  for (rlim_t limit : {rlim_t{1000}, rlim_t{500000}})
    EXPECT_EQ(inChild([&] {
                rlimit most{limit, limit};
                if (setrlimit(RLIMIT_FSIZE, &most) != 0)
                  return 3;
                return exitFor(formAlone(), "File too large");
              }),
              kAsExpected)
        << limit;
}

/// On older kernels any signal ends that call, whatever the flags of its handler.
TEST(SharedMemory, SignalsDoNotKeepItFromGrowing) {
  const Descriptor file(memfd_create("a-test", MFD_CLOEXEC));
  interruptions = 3;
  EXPECT_EQ(growFile(file.get(), 10000, true), 0);
  EXPECT_EQ(interruptions, 0);
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), 10000);
}

} // namespace
} // namespace occl::bootstrap
