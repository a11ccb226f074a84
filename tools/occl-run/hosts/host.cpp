#include "tools/occl-run/hosts/host.h"

#include "tools/occl-run/hosts/agent.h"
#include "tools/occl-run/launch/process.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::run {
namespace {

constexpr int kCannotStart = 127, kConnectionLost = 1;

Ended refused(std::string text) { return {std::move(text), kCannotStart, false, true}; }

/// As one word of a shell on the other side; as it is if that needs no more, for programs that use
/// none.
std::string quoted(const std::string &word) {
  constexpr const char *kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.,:=+-@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos)
    return word;
  // In single quotes everything is itself, but for the quote, which is put outside of them.
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

} // namespace

Host::Rank::Rank(const std::string &prefix)
    : output(prefix, STDOUT_FILENO), errors(prefix, STDERR_FILENO) {}

Host::Host(const HostsOptions &options, const Place &place)
    : options(options), place(place), sayer(place.host + ": ", STDERR_FILENO),
      numRunning(place.numRanks) {
  for (uint32_t i = 0; i < place.numRanks; ++i)
    ranks.emplace_back(options.tagOutput ? rankPrefix(place.firstRank + i) : "");
}

Host::~Host() {
  if (toAgent >= 0)
    close(toAgent);
}

bool Host::start(const sigset_t &inherited) {
  int input[2]; // sockets: writing to one that is closed need not raise SIGPIPE
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0) {
    fmt::print(stderr, "occl-run: no socket to host '{}'\n", name());
    return false;
  }
  ProcessStart process;
  // "ssh host 'agent' word": the program that connects gets the host and what is to be executed
  // there.
  process.command = options.startProgram;
  process.command.push_back(name());
  process.command.push_back(quoted(options.agent));
  process.command.emplace_back(kAgentWord);
  process.input = input[0];
  process.output = fromAgent.writeEnd();
  process.errors = said.writeEnd();
  process.signals = inherited;
  const StartedProcess started = startProcess(process);
  close(input[0]);
  toAgent = input[1];
  // A machine that does not read must not hold up the others.
  fcntl(toAgent, F_SETFL, O_NONBLOCK);
  fromAgent.closeWriteEnd();
  said.closeWriteEnd();
  if (!started.problem.empty())
    fmt::print(stderr, "occl-run: cannot reach host '{}': {}\n", name(), started.problem);
  pid = started.pid;
  return running = started.problem.empty();
}

void Host::send(const std::vector<std::string> &environment) {
  const Place &last = options.places.back();
  const JobOnHost job = {place.firstRank, place.numRanks, last.firstRank + last.numRanks,
                         options.folder,  environment,    options.command};
  pending += encode(FrameKind::Job, 0, encodeJob(job));
  flush();
}

/// Before it has answered nothing runs there; and if it does not obey, the connection ends.
void Host::signal(int number) {
  if (!running)
    return;
  // The second kill is for an agent that does not answer: then the connection is cut, and its end
  // kills the ranks there.
  numKills += number == SIGKILL ? 1 : 0;
  if (numKills > 1 || (hello.empty() && number != SIGUSR1))
    return disconnect();
  pending += encode(FrameKind::Signal, static_cast<uint32_t>(number));
  flush();
}

void Host::disconnect() const {
  if (running && !isGone)
    kill(-pid, SIGKILL);
}

void Host::flush() {
  // Before the agent has said hello the pipe's other end may be a login shell.
  if (hello.empty() || toAgent < 0)
    return;
  while (!pending.empty()) {
    const ssize_t sent = ::send(toAgent, pending.data(), pending.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
      return; // polled for again
    if (sent < 0)
      return pending.clear(); // it has closed, and what it has written says why
    pending.erase(0, static_cast<size_t>(sent));
  }
}

void Host::handle(const Frame &frame, std::vector<Ended> &gone) {
  // Ranks that could not be started.
  if (frame.kind == FrameKind::Refused) {
    numRunning = 0;
    gone.push_back(refused(fmt::format("host '{}': {}", name(), frame.payload)));
    return;
  }
  // Everything from the other side is checked: it may be another version, or no agent at all.
  const uint32_t index = frame.rank - place.firstRank; // wraps around if it is none
  if (frame.kind < FrameKind::Output || index >= ranks.size())
    return;
  Rank &rank = ranks[index];
  if (frame.kind == FrameKind::Output)
    rank.output.add(frame.payload);
  else if (frame.kind == FrameKind::Errors)
    rank.errors.add(frame.payload);
  // Only the end of a rank has a list.
  const auto list = decodeList(frame.payload);
  if (frame.kind != FrameKind::Ended || !rank.running || list.size() != 2)
    return;
  rank.running = false;
  --numRunning;
  gone.push_back(endOf(fmt::format("rank {} (process {} on {})", frame.rank, list[0], name()),
                       static_cast<int>(numberIn(list[1]))));
}

void Host::read(std::vector<Ended> &gone) {
  // What the connecting program says by itself (standard error) is passed on as it is.
  sayer.add(said.readSome());
  reader.add(fromAgent.readSome());
  // Up to the marker it is a greeting of the shell or of ssh.
  if (!hasMarker) {
    const auto before = reader.takeUntilMarker();
    if (!before)
      return;
    sayer.add(*before);
    sayer.finish();
    hasMarker = true;
  }
  while (const auto frame = reader.next())
    if (frame->kind == FrameKind::Hello) {
      hello = decodeList(frame->payload);
      // Frames of another version may mean something else, so nothing else is said to it.
      if (hello.size() < 3 || hello[0] != kWireVersion) {
        hello = {"", "0", "0"};
        numRunning = 0;
        gone.push_back(refused(fmt::format(
            "host '{}' has another version of occl-run at {}: install the same, or name another by "
            "--launch-agent",
            name(), options.agent)));
        disconnect();
      }
    } else {
      handle(*frame, gone);
    }
}

std::string Host::ranksText() const {
  const uint32_t last = place.firstRank + place.numRanks - 1;
  return place.numRanks == 1 ? fmt::format("rank {}", last)
                             : fmt::format("ranks {} to {}", place.firstRank, last);
}

Ended Host::endOfConnection(int status) const {
  // How the connecting program ended tells what happened: 127 is the shell's "not found", 255 ssh's
  // own failure.
  const std::string way = endOf("'" + options.startProgram[0] + "'", status).text;
  if (!hello.empty())
    return {fmt::format("lost host '{}' with {}: {}", name(), ranksText(), way), kConnectionLost};
  const bool isNotThere = WIFEXITED(status) && WEXITSTATUS(status) == 127;
  return refused(fmt::format("cannot start {} on host '{}': {}{}", ranksText(), name(), way,
                             isNotThere ? "; is OCCL there as " + options.agent +
                                              " is? --launch-agent names another"
                                        : ""));
}

void Host::collect(std::vector<Ended> &gone) {
  flush();
  int status = 0;
  // The connecting program may end before its output is read to the end; both are needed before
  // this is over.
  if (running && !isGone)
    isGone = waitpid(pid, &status, WNOHANG) > 0;
  read(gone);
  if (!running || !isGone)
    return;
  kill(-pid, SIGKILL);               // what it has started
  while (fromAgent.readEnd() >= 0) { // it is gone, so this is the rest
    const std::string text = fromAgent.readSome();
    reader.add(text);
    if (text.empty())
      break;
  }
  read(gone);
  running = false;
  // An agent that never began: all that came is its error message.
  if (!hasMarker)
    sayer.add(reader.rest());
  sayer.finish();
  if (numRunning > 0)
    gone.push_back(endOfConnection(status));
}

void Host::addPolled(std::vector<pollfd> &polled) const {
  for (const Pipe *pipe : {&fromAgent, &said})
    if (pipe->readEnd() >= 0)
      polled.push_back({pipe->readEnd(), POLLIN, 0});
  if (!pending.empty() && !hello.empty())
    polled.push_back({toAgent, POLLOUT, 0});
}

void Host::finish() {
  // The end of its input tells the agent to end.
  if (toAgent >= 0)
    close(toAgent);
  toAgent = -1;
  using namespace std::chrono_literals;
  // A second for that, then the connecting program is ended: ssh may wait for ever on a machine
  // that is gone.
  for (auto waited = 0ms; running && !isGone; waited += 10ms) {
    if (waited >= 1s)
      disconnect();
    if (waitpid(pid, nullptr, WNOHANG) != 0)
      isGone = true;
    else
      std::this_thread::sleep_for(10ms);
  }
  // Frames that are still on their way are read, for the last lines of output.
  std::vector<Ended> nothing;
  read(nothing);
  sayer.finish();
  for (Rank &rank : ranks) {
    rank.output.finish();
    rank.errors.finish();
  }
}

} // namespace occl::run
