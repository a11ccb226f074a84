#include "tools/occl-run/launch/process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::run {
namespace {

/// What the new process tells the old one if it cannot become the command.
struct Refusal {
  int error = 0;
  bool isOfFolder = false;
};

[[noreturn]] void refuse(int errorPipe, bool isOfFolder) {
  const Refusal refusal = {errno, isOfFolder};
  (void)!write(errorPipe, &refusal, sizeof refusal);
  _exit(127);
}

void redirect(int from, int to) {
  if (from >= 0)
    dup2(from, to);
}

[[noreturn]] void become(const ProcessStart &start, int errorPipe) {
  setpgid(0, 0);
  for (int signal : start.ignored)
    ::signal(signal, SIG_IGN);
  sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  redirect(start.input >= 0 ? start.input : open("/dev/null", O_RDONLY), STDIN_FILENO);
  redirect(start.output, STDOUT_FILENO);
  redirect(start.errors, STDERR_FILENO);
  for (const std::string &variable : start.environment)
    putenv(const_cast<char *>(variable.c_str()));
  if (!start.folder.empty() && chdir(start.folder.c_str()) != 0)
    refuse(errorPipe, true);
  if (start.command.empty()) {
    close(errorPipe);
    const int status = start.body();
    std::fflush(nullptr);
    _exit(status);
  }
  std::vector<char *> arguments;
  for (const std::string &argument : start.command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  refuse(errorPipe, false);
}

} // namespace

StartedProcess startProcess(const ProcessStart &start) {
  // The child reports through this pipe why it could not execute the command; if it could,
  // close-on-exec closes it, and nothing is read.
  int errorPipe[2];
  if (pipe2(errorPipe, O_CLOEXEC) != 0)
    return {-1, fmt::format("cannot start a process: {}", std::strerror(errno))};
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    // Asks to die with the parent, then makes sure that it has not died before that.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
      _exit(1);
    become(start, errorPipe[1]);
  }
  // close() and others below may change errno.
  const int forkError = errno;
  close(errorPipe[1]);
  Refusal refusal;
  // Ends when the command runs, because that closes the other end.
  if (pid > 0 && read(errorPipe[0], &refusal, sizeof refusal) <= 0)
    refusal.error = 0;
  close(errorPipe[0]);
  if (pid < 0)
    return {-1, fmt::format("cannot start a process: {}", std::strerror(forkError))};
  if (refusal.error == 0)
    return {pid, ""};
  // The child that could not execute the command has ended, or is about to.
  waitpid(pid, nullptr, 0);
  return {-1, fmt::format("cannot {} '{}': {}", refusal.isOfFolder ? "work in" : "run",
                          refusal.isOfFolder ? start.folder : start.command[0],
                          std::strerror(refusal.error))};
}

} // namespace occl::run
