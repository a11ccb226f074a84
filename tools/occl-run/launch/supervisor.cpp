#include "tools/occl-run/launch/supervisor.h"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <optional>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::run {
namespace {

using Clock = std::chrono::steady_clock;

/// From the polite signal to the one that cannot be refused.
constexpr auto kKillAfterTerm = std::chrono::seconds(1);
/// From the end of the first rank that failed to the look for one that was killed.
constexpr auto kUntilKilledAreGone = std::chrono::milliseconds(200);

class Supervisor {
public:
  Supervisor(Ranks &ranks, std::chrono::milliseconds grace) : ranks(ranks), grace(grace) {}

  int run();

private:
  void waitForEvent();
  void handleSignals();
  void reap();
  void ended(const Ended &it);
  void fail(int status);
  void enforceGrace();

  Ranks &ranks;
  const std::chrono::milliseconds grace;
  int signals = -1;
  int result = 0;
  bool terminated = false;
  /// When the ranks that still run get SIGTERM, then SIGKILL.
  std::optional<Clock::time_point> nextBlow;
};

void Supervisor::fail(int status) {
  if (result == 0)
    result = status;
  if (!nextBlow)
    nextBlow = Clock::now() + grace;
}

void Supervisor::ended(const Ended &it) {
  if (it.result == 0)
    return;
  // The first failure is the cause; the others follow from it, and would hide it.
  if (result == 0)
    fmt::print(stderr, "occl-run: {}\n", it.text);
  fail(it.result);
  if (it.endsAllAtOnce)
    ranks.signalAll(SIGKILL);
}

void Supervisor::reap() {
  // All that have ended so far are looked at together, so that the cause can be chosen among them.
  std::vector<Ended> gone;
  ranks.collect(gone);
  const auto wasKilled = [](const Ended &it) { return it.wasKilled; };
  const auto hasFailed = [](const Ended &it) { return it.result != 0 && !it.endsAllAtOnce; };
  // Who is killed may still be on its way out when the others have heard of it and ended.
  if (result == 0 && std::ranges::any_of(gone, hasFailed) &&
      std::ranges::none_of(gone, wasKilled)) {
    std::this_thread::sleep_for(kUntilKilledAreGone);
    ranks.collect(gone);
  }
  // A rank that was killed is the cause of what others report; its message comes first.
  std::ranges::stable_partition(gone, wasKilled);
  for (const Ended &it : gone)
    ended(it);
}

void Supervisor::handleSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD)
      // Ends of children are noticed by the loop.
      continue;
    ranks.signalAll(static_cast<int>(info.ssi_signo));
    // SIGUSR1 asks for reports and ends nothing; the others are passed on, and are this program's
    // end, as a shell expects it: 128 + signal.
    if (info.ssi_signo != SIGUSR1)
      fail(128 + static_cast<int>(info.ssi_signo));
  }
}

void Supervisor::enforceGrace() {
  if (!nextBlow || Clock::now() < *nextBlow)
    return;
  ranks.signalAll(terminated ? SIGKILL : SIGTERM);
  terminated = true;
  nextBlow = Clock::now() + kKillAfterTerm;
}

void Supervisor::waitForEvent() {
  // Signals, output, and the next deadline: whatever comes first.
  std::vector<pollfd> polled = {{signals, POLLIN, 0}};
  ranks.addPolled(polled);
  auto left = ranks.patience();
  if (nextBlow) {
    // Rounded up and not below 0, which would wait for ever.
    const auto untilBlow =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(*nextBlow - Clock::now()),
                 std::chrono::milliseconds(0));
    left = left.count() < 0 ? untilBlow : std::min(left, untilBlow);
  }
  poll(polled.data(), polled.size(), static_cast<int>(left.count()));
}

int Supervisor::run() {
  // Blocked before the first child is started, so that no end is missed; children get the mask as
  // it was before.
  sigset_t watched, inherited;
  sigemptyset(&watched);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &inherited);
  signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  // 127, as shells say of what cannot be started.
  if (!ranks.start(inherited)) {
    result = 127;
    ranks.signalAll(SIGKILL);
  }
  // Until the last rank is gone, also after a failure: none may outlive the job.
  while (ranks.anyRunning()) {
    waitForEvent();
    handleSignals();
    reap();
    enforceGrace();
  }
  ranks.finish();
  close(signals);
  sigprocmask(SIG_SETMASK, &inherited, nullptr);
  return result;
}

} // namespace

Ended endOf(const std::string &who, int waitStatus) {
  if (WIFEXITED(waitStatus))
    return {fmt::format("{} ended with exit status {}", who, WEXITSTATUS(waitStatus)),
            WEXITSTATUS(waitStatus)};
  const int signal = WTERMSIG(waitStatus);
  return {fmt::format("{} was killed by signal {} ({})", who, signal, strsignal(signal)),
          128 + signal, true};
}

int supervise(Ranks &ranks, std::chrono::milliseconds grace) {
  return Supervisor(ranks, grace).run();
}

} // namespace occl::run
