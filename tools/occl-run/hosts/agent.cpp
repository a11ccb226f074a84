#include "tools/occl-run/hosts/agent.h"

#include "support/own_address.h"
#include "tools/occl-run/hosts/own_addresses.h"
#include "tools/occl-run/hosts/wire.h"
#include "tools/occl-run/launch/pipe.h"
#include "tools/occl-run/launch/process.h"
#include "tools/occl-run/launch/variables.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::run {
namespace {

using Clock = std::chrono::steady_clock;

/// For the ranks to end by themselves once occl-run is gone.
constexpr auto kGrace = std::chrono::seconds(1);

class Agent {
public:
  int run();

private:
  struct Child {
    pid_t pid = 0;
    bool running = false;
    Pipe output, errors;
  };

  void takeSignals();
  void waitForEvent();
  void listen();
  void handle(const Frame &frame);
  void startRanks(const JobOnHost &job);
  void forward(uint32_t index);
  void reap();
  void signalAll(int signal);
  void end();
  void say(FrameKind kind, uint32_t rank, std::string_view payload);
  void write(std::string_view text);
  bool anyRunning() const;

  std::string whyNoPort; // said by a number of 0
  const HeldPort port = HeldPort::hold(whyNoPort), storePort = HeldPort::hold(whyNoPort);
  FrameReader reader;
  sigset_t inherited;
  int signals = -1;
  uint32_t firstRank = 0;
  std::vector<std::unique_ptr<Child>> children;
  bool isOver = false; // no rank runs, and none will
  std::optional<Clock::time_point> killAt;
};

void Agent::write(std::string_view text) {
  // A pipe takes as much as it has room for; without anybody who reads, this process has no
  // purpose.
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return end();
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void Agent::say(FrameKind kind, uint32_t rank, std::string_view payload) {
  write(encode(kind, rank, payload));
}

bool Agent::anyRunning() const {
  return std::ranges::any_of(children, [](const auto &child) { return child->running; });
}

void Agent::signalAll(int signal) {
  for (const auto &child : children)
    if (child->running)
      kill(-child->pid, signal);
}

/// Once: occl-run or the connection to it has ended.
void Agent::end() {
  isOver = isOver || !anyRunning();
  if (killAt)
    return;
  signalAll(SIGTERM);
  killAt = Clock::now() + kGrace;
}

void Agent::startRanks(const JobOnHost &job) {
  // Each rank has pipes of its own, so that output is passed on by rank.
  firstRank = job.firstRank;
  for (uint32_t i = 0; i < job.numRanks; ++i) {
    auto child = std::make_unique<Child>();
    ProcessStart process;
    process.command = job.command;
    process.environment = job.environment;
    for (std::string &variable : variablesOf({firstRank + i, job.numAllRanks, i, job.numRanks}))
      process.environment.push_back(std::move(variable));
    // The variables of the job first, then those that differ between its ranks.
    process.folder = job.folder;
    process.output = child->output.writeEnd();
    process.errors = child->errors.writeEnd();
    process.signals = inherited;
    // An asked-for report kills nobody who makes no communicator.
    process.ignored = {SIGUSR1}; // as launcher.cpp has it
    const StartedProcess started = startProcess(process);
    child->output.closeWriteEnd();
    child->errors.closeWriteEnd();
    // One that cannot be started ends the whole job, those that run here included.
    if (!started.problem.empty()) {
      signalAll(SIGKILL);
      say(FrameKind::Refused, firstRank + i, started.problem);
      isOver = true;
      return;
    }
    child->pid = started.pid;
    child->running = true;
    children.push_back(std::move(child));
  }
}

void Agent::handle(const Frame &frame) {
  // A signal's frame has its number where others have a rank.
  const auto signal = static_cast<int>(frame.rank);
  if (frame.kind == FrameKind::Signal) {
    signalAll(signal);
    isOver = isOver || (children.empty() && signal != SIGUSR1);
  } else if (const auto job = frame.kind == FrameKind::Job && children.empty()
                                  ? decodeJob(frame.payload)
                                  : std::nullopt) {
    // A job comes once; anything else is no occl-run at the other end.
    startRanks(*job);
  } else {
    end(); // not of occl-run
  }
}

void Agent::listen() {
  // As much as there is: the reader knows where frames end.
  char buffer[65536];
  const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR)
    return;
  if (got <= 0)
    return end();
  reader.add({buffer, static_cast<size_t>(got)});
  while (const auto frame = reader.next())
    handle(*frame);
  if (reader.isBroken())
    end();
}

void Agent::forward(uint32_t index) {
  Child &child = *children[index];
  for (const auto &[pipe, kind] :
       {std::pair(&child.output, FrameKind::Output), std::pair(&child.errors, FrameKind::Errors)})
    if (const std::string text = pipe->readSome(); !text.empty())
      say(kind, firstRank + index, text);
}

void Agent::reap() {
  for (uint32_t i = 0; i < children.size(); ++i) {
    forward(i);
    // Whatever the rank has written comes before the news of its end.
    Child &child = *children[i];
    int status = 0;
    if (!child.running || waitpid(child.pid, &status, WNOHANG) <= 0)
      continue;
    child.running = false;
    kill(-child.pid, SIGKILL); // what it started itself and left behind
    forward(i);                // before it is said that there is no more
    say(FrameKind::Ended, firstRank + i,
        encodeList({std::to_string(child.pid), std::to_string(status)}));
  }
  isOver = isOver || (!children.empty() && !anyRunning());
}

void Agent::takeSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      end();
}

void Agent::waitForEvent() {
  // After the connection has ended there is nothing to listen to: only the ranks' end and the grace
  // period count.
  std::vector<pollfd> polled = {{signals, POLLIN, 0}, {killAt ? -1 : STDIN_FILENO, POLLIN, 0}};
  for (const auto &child : children)
    for (const Pipe *pipe : {&child->output, &child->errors})
      if (pipe->readEnd() >= 0)
        polled.push_back({pipe->readEnd(), POLLIN, 0});
  // Rounded up, as a poll of 0 ms would spin until the deadline.
  const auto left =
      killAt ? std::chrono::ceil<std::chrono::milliseconds>(*killAt - Clock::now()).count() : -1;
  poll(polled.data(), polled.size(), killAt ? static_cast<int>(std::max<int64_t>(left, 0)) : -1);
  takeSignals();
  if (polled[1].revents)
    listen();
}

int Agent::run() {
  // The program that connects may have been told to ignore some.
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    ::signal(signal, SIG_DFL);
  // Signals are blocked and read from a descriptor, so that one poll waits for everything.
  sigset_t watched;
  sigemptyset(&watched);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, &inherited);
  signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  // The first frame: version, ports and addresses, by which the other ranks will be told where the
  // first one is.
  std::vector<std::string> hello = {std::string(kWireVersion), std::to_string(port.number()),
                                    std::to_string(storePort.number())};
  for (const std::string &address : ownAddresses())
    hello.push_back(address);
  // The shell on the way may print something: the marker says where frames begin.
  write(kAgentMarker);
  say(FrameKind::Hello, 0, encodeList(hello));
  while (!isOver) {
    waitForEvent();
    reap();
    // Those that did not end when asked are killed, and again after the same time.
    if (killAt && Clock::now() >= *killAt) {
      signalAll(SIGKILL);
      killAt = Clock::now() + kGrace;
    }
  }
  return 0;
}

} // namespace

int runAgent() { return Agent().run(); }

} // namespace occl::run
