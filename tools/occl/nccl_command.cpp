#include "tools/occl/nccl_command.h"

#include "tools/occl/programs.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::driver {

namespace {

volatile sig_atomic_t child = 0;

void passOn(int signal) {
  if (child > 0)
    kill(static_cast<pid_t>(child), signal);
}

/// The terminal's keys are everybody's.
void passOnIfSent(int signal, siginfo_t *info, void *) {
  if (info->si_code <= 0) // by kill() and its like
    passOn(signal);
}

/// A signal that is ignored from the start stays so: it is for the command, too.
void passOnWhatIsSent(int signal) {
  struct sigaction present = {}, wanted = {};
  if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN)
    return;
  wanted.sa_sigaction = passOnIfSent;
  wanted.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(signal, &wanted, nullptr);
}

/// A file without a name to which the library adds a line for each process that makes a
/// communicator. Children of the command reach it as long as this process is there.
class UseReport {
public:
  UseReport() : file(open("/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600)) {
    if (file < 0)
      return; // then nothing is said
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
    setenv("OCCL_NCCL_REPORT", path.c_str(), 1);
  }
  ~UseReport() {
    if (file >= 0)
      close(file);
  }
  UseReport(const UseReport &) = delete;
  UseReport &operator=(const UseReport &) = delete;

  bool isEmpty() const {
    struct stat found = {};
    return file >= 0 && fstat(file, &found) == 0 && found.st_size == 0;
  }

private:
  const int file;
};

void preload(const std::string &library) {
  // In front of others' libraries, so that its names are found first.
  const char *others = std::getenv("LD_PRELOAD");
  const std::string all = others && *others ? library + ":" + others : library;
  setenv("LD_PRELOAD", all.c_str(), 1);
  // For Python that is started without the former, if OCCL's package is installed there.
  setenv("OCCL_NCCL_PRELOAD", "1", 1);
  setenv("OCCL_NCCL_LIBRARY", library.c_str(), 1);
  // As many streams as that may wait before calls are refused; a program's own choice stays.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

/// Starts the command with these signals blocked; 0 if it cannot, after a line on standard error,
/// with `status` what that is to be. The child shares this process's memory until it executes the
/// command, as copying page tables would take longer than all else here.
pid_t start(const std::vector<std::string> &command, const sigset_t &mask, int &status) {
  std::vector<char *> words;
  for (const std::string &word : command)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  // Shared with the child, which writes into it: vfork() runs it in this process's memory.
  volatile int why = 0;
  // The child calls nothing else that counts. NOLINTNEXTLINE(bugprone-unsafe-functions)
  const pid_t process = vfork();
  if (process == 0) {
    // The mask as it was: the program must not inherit blocked signals.
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execvp(words[0], words.data());
    why = errno;
    _exit(127);
  }
  // exec succeeded if the child has written nothing.
  if (process > 0 && why == 0)
    return process;
  if (process > 0)
    waitpid(process, nullptr, 0);
  else
    why = errno;
  std::fprintf(stderr, "occl nccl: %s: %s\n", command[0].c_str(), std::strerror(why));
  // As shells have it: 127 not found, 126 not executable.
  status = process < 0 ? 1 : why == ENOENT ? 127 : 126;
  return 0;
}

int statusOf(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR)
      return 1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace

int runWithNccl(const std::vector<std::string> &command, bool isOnHost) {
  const std::string library = pathOfNccl();
  if (library.empty() || access(library.c_str(), R_OK) != 0) {
    std::fprintf(stderr,
                 "occl nccl: %s: OCCL's libnccl.so.2 is not there; `make install` puts it into "
                 "lib/occl/nccl, OCCL_NCCL_LIBRARY names another place\n",
                 library.empty() ? "lib/occl/nccl/libnccl.so.2" : library.c_str());
    return 1;
  }
  UseReport report;
  preload(library);
  if (isOnHost)
    setenv("OCCL_NCCL_HOST", "1", 1);

  // The signals are held back until there is somebody to have them.
  sigset_t passed, before;
  sigemptyset(&passed);
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT})
    sigaddset(&passed, signal);
  sigprocmask(SIG_BLOCK, &passed, &before);
  int status = 0;
  const pid_t process = start(command, before, status);
  if (process == 0)
    return status;
  // Known to the handlers before signals are let through.
  child = process;
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    std::signal(signal, passOn);
  for (const int signal : {SIGINT, SIGQUIT})
    passOnWhatIsSent(signal);
  sigprocmask(SIG_SETMASK, &before, nullptr);

  status = statusOf(process);
  if (report.isEmpty() && status != 127 && status != 126)
    std::fprintf(stderr,
                 "occl nccl: %s has made no NCCL communicator here: it calls none, or one that is "
                 "linked into it, or it or its children run without LD_PRELOAD\n",
                 command[0].c_str());
  return status;
}

} // namespace occl::driver
