#include "nccl/bootstrap/attendance.h"

#include "nccl/base/environment.h"
#include "nccl/bootstrap/root.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace occl::nccl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGlance = std::chrono::milliseconds(50); // how often it is asked about cancellation

Outcome rootIsGone() {
  return {ncclRemoteError,
          "the process that made the id has ended, or the ranks of the id have come "
          "together without this one"};
}

/// Once a process: nobody should wonder why it is slow.
void warnOfNetwork(const std::string &why, const std::string &whyNoOther) {
  const std::string text = why + ": data goes over TCP, through host memory; " + whyNoOther;
  static std::atomic<bool> isSaid = false;
  if (whyNoOther.find("OCCL_NCCL_FALLBACK=0") == std::string::npos && !isSaid.exchange(true))
    std::fprintf(stderr, "OCCL (libnccl): %s\n", text.c_str());
  log(LogLevel::Info, text);
}

/// What the ranks of the id know, and strangers do not.
std::string secretOf(const IdLayout &id) {
  std::string secret;
  // In hexadecimal, as it becomes part of a rendezvous name, which is text.
  const auto add = [&](const auto &bytes) {
    for (const unsigned byte : bytes) {
      secret += "0123456789abcdef"[byte >> 4];
      secret += "0123456789abcdef"[byte & 15];
    }
  };
  add(id.name);
  add(id.key);
  return secret;
}

Outcome failureOf(const FromRoot &message) {
  return {static_cast<ncclResult_t>(message.result), message.text.str()};
}

} // namespace

Attendance::Attendance(const IdLayout &id, uint32_t numRanks, uint32_t rank, std::string wish,
                       bool mayBeEarly, std::function<bool()> isCancelled)
    : id(id), numRanks(numRanks), rank(rank), wish(std::move(wish)), mayBeEarly(mayBeEarly),
      isCancelled(std::move(isCancelled)) {}

FromRank Attendance::messageOf(FromRankKind kind) const {
  FromRank made{};
  // The same fields in each kind of message, so that the root can check any of them by itself: it
  // is the key that distinguishes a rank from a stranger.
  made.magic = kMessageMagic;
  made.kind = kind;
  made.name = id.name;
  made.key = id.key;
  made.machine = machineId();
  made.process = getpid();
  made.numRanks = numRanks;
  made.rank = rank;
  made.host = hostName();
  made.wish = wish;
  return made;
}

Outcome Attendance::say(const FromRank &message) {
  // It is a stranger's first message in an empty buffer, or one of three.
  return sendWhole(socket.get(), &message, sizeof(message)) ? Outcome() : rootIsGone();
}

Outcome Attendance::connect() {
  // On the machine of the root the local socket is reached without any interface being up, and by
  // no other machine.
  if (id.machine == machineId())
    return connectTo(localAddress(id.rootName), "the process that made the id");
  const Address address = loadAddress(id);
  if (address.length == 0)
    return invalidUsage("the id was made on another machine, by a process that listens on no "
                        "network: NCCL_SOCKET_IFNAME chooses its interface");
  return connectTo(address, "the process that made the id, on another machine, " + address.text());
}

Outcome Attendance::connectTo(Address address, const std::string &what) {
  // A deadline only where it is known that somebody should be there; see the loops.
  const auto end = Clock::now() + patience();
  socket = Socket::open([&] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
  if (!socket)
    return {ncclSystemError, std::string("socket: ") + std::strerror(errno)};
  // Non-blocking from the beginning, since a rank that waits in connect() could not be aborted.
  int error = ::connect(socket.get(), address.get(), address.length) == 0 ? 0 : errno;
  // A local socket whose backlog is full says EAGAIN: others are before this one.
  while (error == EAGAIN && Clock::now() < end && !isCancelled()) {
    ::poll(nullptr, 0, 1);
    error = ::connect(socket.get(), address.get(), address.length) == 0 ? 0 : errno;
  }
  // Nobody knows when the program makes the id.
  // With NCCL_COMM_ID a rank may be started long before the one whose socket this is.
  while (error == ECONNREFUSED && mayBeEarly && !isCancelled()) {
    ::poll(nullptr, 0, 5);
    error = ::connect(socket.get(), address.get(), address.length) == 0 ? 0 : errno;
  }
  // The three-way handshake over the network, watched in short turns so that an abort is noticed.
  while (error == EINPROGRESS && Clock::now() < end && !isCancelled()) {
    pollfd file = {socket.get(), POLLOUT, 0};
    if (::poll(&file, 1, static_cast<int>(kGlance.count())) <= 0)
      continue;
    socklen_t length = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0)
    return {ncclRemoteError, what + ", cannot be reached: " +
                                 (error == EINPROGRESS ? "no answer" : std::strerror(error)) +
                                 ". It must live until all ranks have come together"};
  const int flags = fcntl(socket.get(), F_GETFL); // from here on it waits in poll alone
  fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK);
  return {};
}

bool Attendance::poll(std::chrono::milliseconds wait, FromRoot &message, Outcome &outcome) {
  // Returns false until a whole message is there, so that the caller can look at other things
  // between the pieces.
  outcome = {};
  pollfd file = {socket.get(), POLLIN, 0};
  if (::poll(&file, 1, static_cast<int>(wait.count())) <= 0)
    return false;
  // Messages are of one size, and TCP may deliver them in pieces: what is there so far is kept for
  // the next call.
  char *to = reinterpret_cast<char *>(&incoming) + numReceived;
  const ssize_t got = recv(socket.get(), to, sizeof(incoming) - numReceived, 0);
  if (got < 0 && errno == EINTR)
    return false;
  if (got <= 0) {
    // Whatever the root has said before it went is no longer worth anything, so this is the failure
    // of all later calls, too.
    failure = outcome = rootIsGone();
    return true;
  }
  numReceived += static_cast<size_t>(got);
  if (numReceived < sizeof(incoming))
    return false;
  numReceived = 0;
  message = incoming;
  if (message.magic != kMessageMagic)
    outcome = {ncclInternalError, "the process that made the id is of another version of OCCL"};
  else if (message.kind == FromRootKind::Failed)
    failure = outcome = failureOf(message);
  return true;
}

Outcome Attendance::receive(FromRoot &message, std::optional<Clock::time_point> end) {
  for (Outcome outcome;;) {
    if (poll(kGlance, message, outcome))
      return outcome;
    if (isCancelled())
      return invalidUsage("the communicator was aborted");
    if (end && Clock::now() > *end)
      return {ncclRemoteError, "the process that made the id does not answer"};
  }
}

Outcome Attendance::decide(const Prepare &prepare, Decision &decision) {
  // An id without a root (NCCL_COMM_ID: each rank makes it by itself) has no process that could
  // tell where the others are. They are on this machine, or nothing can be decided.
  if (!id.hasRoot()) {
    if (id.machine != machineId())
      return invalidUsage("the id was made on another machine, by a process that cannot be asked "
                          "which ranks there are");
    return wish.empty()
               ? Outcome()
               : invalidUsage(wish + ", which OCCL does not do, and with NCCL_COMM_ID ranks "
                                     "do not go to another NCCL");
  }
  if (Outcome outcome = connect(); !outcome.ok())
    return outcome;
  if (Outcome outcome = say(messageOf(FromRankKind::Hello)); !outcome.ok())
    return outcome;
  // The root answers within its patience, twice if ranks come at its end, when it is known that one
  // is elsewhere; before that nobody knows when ranks come.
  std::optional<Clock::time_point> end;
  if (id.machine != machineId() || !wish.empty())
    end = Clock::now() + 3 * patience();
  // Held from "Listen" until OCCL's own bootstrap listens there: in between, no other process may
  // take the port.
  HeldPort held;
  // The root leads: it says what to do, and a rank answers. Local: all ranks are here, OCCL
  // executes. Init: all have another NCCL. Across: OCCL over the network. The others are steps on
  // the way there.
  for (FromRoot message{};;) {
    if (Outcome outcome = receive(message, end); !outcome.ok())
      return outcome;
    // OCCL executes what is on one machine, and connects through shared memory.
    if (message.kind == FromRootKind::Local)
      return {};
    if (message.kind == FromRootKind::Init) {
      decision.isOther = true;
      decision.id = message.id;
      return {};
    }
    if (message.kind == FromRootKind::Across) {
      decision.why = message.why.str();
      decision.across = Across{message.text.str() + "/" + secretOf(id), std::move(held)};
      return {};
    }
    if (message.kind == FromRootKind::Listen) {
      warnOfNetwork(message.why.str(), message.text.str());
      if (Outcome outcome = listen(held); !outcome.ok())
        return outcome;
    }
    // Another version's message, which this one has no answer to.
    if (message.kind != FromRootKind::Prepare)
      continue;
    decision.why = message.why.str();
    // The others may be slow to load their library, so the patience begins again.
    end = Clock::now() + 3 * patience();
    FromRank prepared = messageOf(FromRankKind::Prepared);
    const Outcome own = prepare(prepared);
    prepared.result = own.result;
    prepared.text = own.text;
    if (Outcome outcome = say(prepared); !outcome.ok())
      return outcome;
  }
}

/// Where the others will find this rank: whoever listens there is OCCL.
Outcome Attendance::listen(HeldPort &held) {
  FromRank listening = messageOf(FromRankKind::Listening);
  Address address = interfaceAddress();
  std::string why;
  held = holdPort(address, why);
  listening.result = held.number() != 0 ? ncclSuccess : ncclSystemError;
  listening.text = held.number() != 0 ? address.text() : why;
  return say(listening);
}

Outcome Attendance::othersFailure() {
  FromRoot message{};
  Outcome outcome;
  poll(std::chrono::milliseconds(0), message, outcome);
  return outcome;
}

Outcome Attendance::finish(const Outcome &own) {
  // What has failed before is not asked about again: the root is gone or has said no.
  if (failure)
    return *failure;
  FromRank done = messageOf(FromRankKind::Done);
  done.result = own.result;
  done.text = own.text;
  if (Outcome outcome = say(done); !outcome.ok())
    return own.ok() ? outcome : own;
  FromRoot message{};
  return receive(message, Clock::now() + 2 * patience());
}

} // namespace occl::nccl
