#include "tools/occl-run/launcher.h"

#include "tools/occl-run/line_tagger.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::run {
namespace {

using Clock = std::chrono::steady_clock;

/// From the polite signal to the one that cannot be refused.
constexpr auto kKillAfterTerm = std::chrono::seconds(1);
/// From the end of the first rank that failed to the look for one that was killed.
constexpr auto kUntilKilledAreGone = std::chrono::milliseconds(200);

struct Child {
  pid_t pid = 0;
  bool running = false;
  std::unique_ptr<LineTagger> output, errors; // only when output is tagged
};

struct Ended {
  uint32_t rank;
  int status; // of waitpid
};

class Job {
public:
  explicit Job(const LaunchOptions &options) : options(options), children(options.numRanks) {}

  int run();

private:
  bool start(uint32_t rank);
  [[noreturn]] void becomeRank(uint32_t rank, int errorPipe);
  void waitForEvent();
  void handleSignals();
  /// Those that have ended since the last time, by rank.
  void collect(std::vector<Ended> &gone);
  void reap();
  void ended(uint32_t rank, int status);
  void fail(int status);
  void enforceGrace();
  void signalAll(int signal);
  bool anyRunning() const;

  const LaunchOptions &options;
  std::vector<Child> children;
  std::string name;
  sigset_t watched, inherited;
  int signals = -1;
  int result = 0;
  bool terminated = false;
  std::optional<Clock::time_point>
      nextBlow; // when the ranks that still run get SIGTERM, then SIGKILL
};

std::string jobName() {
  std::random_device random;
  return fmt::format("run-{}-{:08x}{:08x}", getpid(), random(), random());
}

void Job::becomeRank(uint32_t rank, int errorPipe) {
  // Ask to die with the parent, then make sure that it has not died before that.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, &inherited, nullptr);
  // Asks for a report, which what makes no communicator, or none yet, must survive.
  signal(SIGUSR1, SIG_IGN);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (options.tagOutput) {
    dup2(children[rank].output->writeEnd(), STDOUT_FILENO);
    dup2(children[rank].errors->writeEnd(), STDERR_FILENO);
  }
  setenv("OCCL_RANK", std::to_string(rank).c_str(), 1);
  setenv("OCCL_SIZE", std::to_string(options.numRanks).c_str(), 1);
  setenv("OCCL_JOB", name.c_str(), 1);
  if (options.command.empty()) {
    close(errorPipe);
    int status = options.body(rank);
    std::fflush(nullptr);
    _exit(status);
  }
  std::vector<char *> arguments;
  for (const std::string &argument : options.command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  int error = errno;
  (void)!write(errorPipe, &error, sizeof error);
  _exit(127);
}

bool Job::start(uint32_t rank) {
  Child &child = children[rank];
  if (options.tagOutput) {
    child.output = std::make_unique<LineTagger>(rank, STDOUT_FILENO);
    child.errors = std::make_unique<LineTagger>(rank, STDERR_FILENO);
  }
  int errorPipe[2];
  if (pipe2(errorPipe, O_CLOEXEC) != 0) {
    fmt::print(stderr, "occl-run: cannot start rank {}: {}\n", rank, std::strerror(errno));
    return false;
  }
  pid_t launcher = getpid();
  child.pid = fork();
  if (child.pid == 0) {
    if (getppid() != launcher)
      _exit(1);
    becomeRank(rank, errorPipe[1]);
  }
  int error = child.pid < 0 ? errno : 0;
  close(errorPipe[1]);
  child.running = child.pid > 0;
  // Ends when the command runs, because that closes the other end.
  if (child.running && read(errorPipe[0], &error, sizeof error) <= 0)
    error = 0;
  close(errorPipe[0]);
  if (options.tagOutput) {
    child.output->closeWriteEnd();
    child.errors->closeWriteEnd();
  }
  if (error != 0)
    fmt::print(stderr, "occl-run: cannot run '{}': {}\n", options.command[0], std::strerror(error));
  return error == 0;
}

bool Job::anyRunning() const {
  for (const Child &child : children)
    if (child.running)
      return true;
  return false;
}

void Job::signalAll(int signal) {
  for (const Child &child : children)
    if (child.running)
      kill(-child.pid, signal);
}

void Job::fail(int status) {
  if (result == 0)
    result = status;
  if (!nextBlow)
    nextBlow = Clock::now() + options.grace;
}

void Job::ended(uint32_t rank, int status) {
  const Child &child = children[rank];
  kill(-child.pid, SIGKILL); // what it started itself and left behind
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  const bool first = result == 0;
  if (WIFEXITED(status)) {
    fail(WEXITSTATUS(status));
    if (first)
      fmt::print(stderr, "occl-run: rank {} (process {}) ended with exit status {}\n", rank,
                 child.pid, WEXITSTATUS(status));
  } else {
    fail(128 + WTERMSIG(status));
    if (first)
      fmt::print(stderr, "occl-run: rank {} (process {}) was killed by signal {} ({})\n", rank,
                 child.pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
}

void Job::collect(std::vector<Ended> &gone) {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    int status = 0;
    if (!child.running || waitpid(child.pid, &status, WNOHANG) <= 0)
      continue;
    child.running = false;
    gone.push_back({rank, status});
  }
}

void Job::reap() {
  std::vector<Ended> gone;
  collect(gone);
  auto wasKilled = [](const Ended &it) { return WIFSIGNALED(it.status); };
  auto hasFailed = [](const Ended &it) { return it.status != 0; };
  // Who is killed may still be on its way out when the others have heard of it and ended.
  if (result == 0 && std::ranges::any_of(gone, hasFailed) &&
      std::ranges::none_of(gone, wasKilled)) {
    std::this_thread::sleep_for(kUntilKilledAreGone);
    collect(gone);
  }
  std::ranges::stable_partition(gone, wasKilled);
  for (const Ended &it : gone)
    ended(it.rank, it.status);
}

void Job::handleSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD)
      continue;
    signalAll(static_cast<int>(info.ssi_signo));
    if (info.ssi_signo != SIGUSR1)
      fail(128 + static_cast<int>(info.ssi_signo));
  }
}

void Job::enforceGrace() {
  if (!nextBlow || Clock::now() < *nextBlow)
    return;
  signalAll(terminated ? SIGKILL : SIGTERM);
  terminated = true;
  nextBlow = Clock::now() + kKillAfterTerm;
}

void Job::waitForEvent() {
  std::vector<pollfd> watchedFiles = {{signals, POLLIN, 0}};
  std::vector<LineTagger *> taggers;
  for (Child &child : children)
    for (LineTagger *tagger : {child.output.get(), child.errors.get()})
      if (tagger && tagger->readEnd() >= 0) {
        watchedFiles.push_back({tagger->readEnd(), POLLIN, 0});
        taggers.push_back(tagger);
      }
  int timeout = -1;
  if (nextBlow)
    timeout = static_cast<int>(std::max<int64_t>(
        0, std::chrono::ceil<std::chrono::milliseconds>(*nextBlow - Clock::now()).count()));
  poll(watchedFiles.data(), watchedFiles.size(), timeout);
  for (size_t i = 0; i < taggers.size(); ++i)
    if (watchedFiles[i + 1].revents)
      taggers[i]->forward();
}

int Job::run() {
  name = jobName();
  sigemptyset(&watched);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &inherited);
  signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  for (uint32_t rank = 0; rank < options.numRanks && result == 0; ++rank)
    if (!start(rank)) {
      result = 127;
      signalAll(SIGKILL);
    }
  while (anyRunning()) {
    waitForEvent();
    handleSignals();
    reap();
    enforceGrace();
  }
  for (Child &child : children)
    for (LineTagger *tagger : {child.output.get(), child.errors.get()})
      if (tagger)
        tagger->finish();
  close(signals);
  sigprocmask(SIG_SETMASK, &inherited, nullptr);
  return result;
}

} // namespace

int launch(const LaunchOptions &options) { return Job(options).run(); }

} // namespace occl::run
