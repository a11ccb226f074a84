// Reports on a signal: a handler that only wakes, and a thread that writes.
#include "runtime/observe/report/report_signal.h"

#include "runtime/base/process_identity.h"
#include "runtime/observe/report/output.h"
#include "runtime/sync/background_thread.h"
#include "runtime/sync/mutex.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::insight {

namespace {

/// A handler that the program had when ours was installed; it may call the handler that it has
/// found, which is ours if that was installed before.
struct Former {
  struct sigaction action;
  const Former *earlier;
};

/// The eventfd that wakes the thread. A child of fork() has its parent's.
struct WakeFile {
  int descriptor;
  ProcessMark mark = {};
};

// What the handler uses: set before it is installed, and never given back.
std::atomic<const WakeFile *> wakeFile{nullptr};
std::array<std::atomic<const Former *>, NSIG> formers;
static_assert(std::atomic<const Former *>::is_always_lock_free);

/// The handler of the program that ours is calling in a thread. No thread_local: its memory may
/// be allocated at its first use, which a handler must not do.
struct Calling {
  std::atomic<pid_t> thread{0}; // 0: free
  int signal = 0;
  const Former *former = nullptr;
};
/// For as many threads as are in handlers at a time; in more only the wake is done.
constinit std::array<Calling, 64> callings;

/// The place of this thread, or null; `isNew`: it has taken a free one.
Calling *callingOfThisThread(bool &isNew) {
  const pid_t self = gettid();
  isNew = false;
  for (Calling &each : callings)
    if (each.thread.load(std::memory_order_relaxed) == self)
      return &each;
  for (Calling &each : callings) {
    pid_t none = 0;
    isNew = each.thread.compare_exchange_strong(none, self, std::memory_order_acquire);
    if (isNew)
      return &each;
  }
  return nullptr;
}

/// The file of this process; null: it has none.
const WakeFile *ownWakeFile() {
  const WakeFile *present = wakeFile;
  return present && present->mark.isThisProcess() ? present : nullptr;
}

void wake() {
  uint64_t one = 1;
  if (const WakeFile *file = ownWakeFile())
    (void)!write(file->descriptor, &one, sizeof one);
}

/// Forgets rings; true if there were any.
bool takeWake() {
  uint64_t count = 0;
  return read(ownWakeFile()->descriptor, &count, sizeof count) == sizeof count;
}

/// The handler of the program is called as well, and if that calls ours the one before it.
void callFormer(Calling &own, int signal, siginfo_t *info, void *context) {
  const int outerSignal = own.signal;
  const Former *const outer = own.former;
  const Former *former =
      outerSignal == signal ? outer->earlier : formers[static_cast<size_t>(signal)].load();
  if (!former)
    return;
  own.former = former;
  own.signal = signal;
  const struct sigaction &action = former->action;
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
    action.sa_handler(signal);
  own.signal = outerSignal;
  own.former = outer;
}

void onSignal(int signal, siginfo_t *info, void *context) {
  int savedError = errno;
  wake();
  bool isOutermost = false;
  if (Calling *const own = callingOfThisThread(isOutermost)) {
    callFormer(*own, signal, info, context);
    if (isOutermost)
      own->thread.store(0, std::memory_order_release);
  }
  errno = savedError;
}

class Service {
public:
  Status arm(int signal, const std::string &newPattern);
  void add(std::shared_ptr<const Reporter> reporter);
  void remove(const std::shared_ptr<const Reporter> &reporter);

private:
  void startThread();
  void stopThread();
  void loop();
  void reportAll(std::unique_lock<Mutex> &lock);

  Mutex lifeMutex; // one change of the thread's life at a time
  std::thread thread;
  bool armed = false; // under lifeMutex

  Mutex mutex; // guards all below; not held while a report is made and written
  ConditionVariable isWritten;
  const Reporter *reporting = nullptr; // whose report that is
  std::vector<std::shared_ptr<const Reporter>> reporters;
  std::string pattern;
  bool stopping = false;
};

/// Never destroyed: communicators may live as long as the process. A child of fork() has its own,
/// without the thread and the reporters of its parent.
Service &service() {
  static constinit PerProcess<Service> theService;
  return theService.get();
}

Status Service::arm(int signal, const std::string &newPattern) {
  std::lock_guard life(lifeMutex);
  // The file is never closed, as the handler may run at any time.
  if (!ownWakeFile()) {
    const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0)
      return systemError("making an eventfd for reports", errno);
    wakeFile = new WakeFile{made};
  }
  struct sigaction present {};
  if (signal <= 0 || signal >= NSIG || sigaction(signal, nullptr, &present) != 0)
    return {StatusCode::InvalidArgument, "there is no signal " + std::to_string(signal)};
  // A second call for a signal changes the pattern alone.
  bool isOurs = (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == onSignal;
  if (!isOurs) {
    // The former handler is stored before the new one can call it.
    auto &former = formers[static_cast<size_t>(signal)];
    former = new Former{present, former};
    struct sigaction ours {};
    ours.sa_sigaction = onSignal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    if (sigaction(signal, &ours, nullptr) != 0)
      return {StatusCode::InvalidArgument,
              "signal " + std::to_string(signal) + " cannot be handled: " + std::strerror(errno)};
  }
  {
    std::lock_guard lock(mutex);
    pattern = newPattern;
  }
  armed = true;
  startThread();
  return {};
}

/// Under lifeMutex.
void Service::startThread() {
  {
    std::lock_guard lock(mutex);
    if (!armed || thread.joinable() || reporters.empty())
      return;
    stopping = false;
  }
  takeWake();
  const SignalsBlocked whileItStarts;
  try {
    thread = std::thread([this] { loop(); });
  } catch (const std::system_error &) {
    // Without the thread there are no reports by signal; everything else works.
  }
}

/// Under lifeMutex.
void Service::stopThread() {
  {
    std::lock_guard lock(mutex);
    if (!thread.joinable() || !reporters.empty())
      return;
    stopping = true;
  }
  wake();
  thread.join();
}

void Service::add(std::shared_ptr<const Reporter> reporter) {
  std::lock_guard life(lifeMutex);
  {
    std::lock_guard lock(mutex);
    reporters.push_back(std::move(reporter));
  }
  startThread();
}

void Service::remove(const std::shared_ptr<const Reporter> &reporter) {
  {
    // The thread may be writing this report, without the lock.
    std::unique_lock lock(mutex);
    std::erase(reporters, reporter);
    isWritten.wait(lock, [&] { return reporting != reporter.get(); });
  }
  std::lock_guard life(lifeMutex);
  stopThread();
}

void Service::loop() {
  for (;;) {
    pollfd file{ownWakeFile()->descriptor, POLLIN, 0};
    poll(&file, 1, -1);
    bool isAsked = takeWake();
    std::unique_lock lock(mutex);
    // stopThread() wakes the thread, too.
    if (stopping)
      return;
    if (isAsked)
      reportAll(lock);
  }
}

void writeReport(const Reporter &reporter, const std::string &pattern) {
  std::string path = pattern.empty() ? "" : pathOf(pattern, reporter.rank, reporter.numRanks);
  Status written = append(path, "OCCL: rank " + std::to_string(reporter.rank) + " of " +
                                    std::to_string(reporter.numRanks) + ", process " +
                                    std::to_string(getpid()) + ", reports:\n" + reporter.report());
  if (!path.empty())
    complain(written);
}

/// Under the mutex, but while it writes. Who is removed meanwhile waits for its own report only.
void Service::reportAll(std::unique_lock<Mutex> &lock) {
  const auto all = reporters;
  for (const auto &reporter : all) {
    if (std::ranges::find(reporters, reporter) == reporters.end())
      continue;
    reporting = reporter.get();
    const std::string to = pattern;
    lock.unlock();
    writeReport(*reporter, to);
    lock.lock();
    reporting = nullptr;
    isWritten.notify_all();
  }
}

} // namespace

Status reportOnSignal(int signal, const std::string &pattern) {
  return service().arm(signal, pattern);
}

int signalNamed(const std::string &name) {
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
    long number = std::strtol(name.c_str(), nullptr, 10);
    return number < NSIG ? static_cast<int>(number) : 0;
  }
  std::string shortName = name.starts_with("SIG") ? name.substr(3) : name;
  for (int signal = 1; signal < NSIG; ++signal) {
    const char *abbreviation = sigabbrev_np(signal);
    if (abbreviation && shortName == abbreviation)
      return signal;
  }
  return 0;
}

Status reportAsEnvironmentSays() {
  const char *name = std::getenv("OCCL_REPORT_SIGNAL");
  if (!name || *name == '\0')
    return {};
  int signal = signalNamed(name);
  if (signal == 0)
    return {StatusCode::InvalidArgument,
            std::string("OCCL_REPORT_SIGNAL=") + name + " names no signal; use USR1, or a number"};
  const char *file = std::getenv("OCCL_REPORT_FILE");
  return reportOnSignal(signal, file ? file : "");
}

ReporterRegistration::ReporterRegistration(Reporter given)
    : reporter(std::make_shared<const Reporter>(std::move(given))) {
  service().add(reporter);
}

ReporterRegistration::~ReporterRegistration() { service().remove(reporter); }

} // namespace occl::insight
