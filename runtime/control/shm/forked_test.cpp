#include "runtime/control/shm/forked.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::bootstrap {
namespace {

bool isOpen(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

/// Whether that is so in a child made now.
bool isSoInChild(const std::function<bool()> &claim) {
  const pid_t child = fork();
  if (child == 0)
    _exit(claim() ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int openNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(Forked, FilesOpenedNotInheritedAreClosedInAChild) {
  const Descriptor own = openNotInherited(openNull), other(openNull());
  ASSERT_TRUE(own.valid() && other.valid());
  EXPECT_TRUE(isSoInChild([&] { return !isOpen(own.get()) && isOpen(other.get()); }));
  EXPECT_TRUE(isOpen(own.get()));
}

TEST(Forked, ItsNumberIsInheritedAgainOnceItIsClosed) {
  Descriptor own = openNotInherited(openNull);
  const int number = own.get();
  own = Descriptor();
  const Descriptor other(openNull());
  ASSERT_EQ(other.get(), number);
  EXPECT_TRUE(isSoInChild([&] { return isOpen(number); }));
}

TEST(Forked, AnotherReasonToCloseItThatEndsChangesNothing) {
  const Descriptor own = openNotInherited(openNull), other(openNull());
  std::optional<ClosedInChildren> again(own.get()), first(other.get()), second(other.get());
  again.reset();
  first.reset();
  EXPECT_TRUE(isSoInChild([&] { return !isOpen(own.get()) && !isOpen(other.get()); }));
  second.reset();
  EXPECT_TRUE(isSoInChild([&] { return !isOpen(own.get()) && isOpen(other.get()); }));
}

TEST(Forked, TheCopyInAChildClosesNothingOfTheChild) {
  Descriptor own = openNotInherited(openNull);
  EXPECT_TRUE(isSoInChild([&] {
    const Descriptor ofChild(openNull());
    if (ofChild.get() != own.get())
      return false;
    own = Descriptor();
    return isOpen(ofChild.get());
  }));
}

TEST(Forked, AFileThatCannotBeOpenedSaysWhy) {
  const Descriptor none = openNotInherited([] { return open("/nowhere/at/all", O_RDONLY); });
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(errno, ENOENT);
}

#ifndef __SANITIZE_THREAD__ // which does not survive fork() of a process with threads
TEST(Forked, AChildMadeWhileAnotherThreadOpensHasNothingOfIt) {
  constexpr int kMost = 256;
  std::array<bool, kMost> before{};
  for (int number = 0; number < kMost; ++number)
    before[static_cast<size_t>(number)] = isOpen(number);
  std::atomic<bool> stops{false};
  std::thread opens([&] {
    while (!stops)
      openNotInherited(openNull);
  });
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(isSoInChild([&] {
      for (int number = 0; number < kMost; ++number)
        if (isOpen(number) != before[static_cast<size_t>(number)])
          return false;
      return true;
    }));
  stops = true;
  opens.join();
}
#endif

} // namespace
} // namespace occl::bootstrap
