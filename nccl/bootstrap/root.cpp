#include "nccl/bootstrap/root.h"

#include "nccl/base/environment.h"
#include "nccl/base/per_process.h"
#include "nccl/base/threads.h"
#include "nccl/bootstrap/meeting.h"
#include "nccl/bootstrap/network.h"

#include <algorithm>
#include <cerrno>
#include <list>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

namespace occl::nccl {

namespace {

using Clock = Meeting::Clock;

/// Of a rank, or of a stranger until it has said which.
struct Connection {
  Socket socket;
  bool isOfNetwork;
  Clock::time_point since;
  std::array<uint8_t, 16> name{};
  uint32_t rank = 0;
  bool isMember = false, isClosed = false;
  FromRank incoming{};
  size_t numReceived = 0;
};

class Root {
public:
  /// Whether ranks can reach it.
  bool start() {
    // Random, so that no other process has the socket by chance, and none can guess it.
    if (getrandom(rootName.data(), rootName.size(), 0) != static_cast<ssize_t>(rootName.size()))
      return false;
    Address local = localAddress(rootName);
    localListener = listenAt(local);
    // Without a network only ranks of this machine can come, which is most jobs.
    network = interfaceAddress();
    networkListener = listenAt(network);
    wake = Socket::open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (!networkListener)
      network = Address();
    // Without the local socket or the event there is no root at all: the id would name nobody.
    if (!localListener || !wake)
      return false;
    try {
      startThread([this] { serve(); });
    } catch (const std::system_error &) {
      return false;
    }
    return true;
  }

  /// False if an id with a socket of its own cannot have that.
  bool open(IdLayout &id) {
    std::lock_guard lock(mutex);
    Socket own;
    // An id made here names this root; one of NCCL_COMM_ID has a name of its own, and needs a
    // socket of that name, which only one process can have.
    if (!id.hasRoot()) {
      id.rootName = rootName;
    } else if (!meetings.count(id.name)) {
      Address local = localAddress(id.rootName);
      own = listenAt(local);
      if (!own)
        return errno == EADDRINUSE; // then another process has it, and the same id
    }
    // The network's address goes into the id even if all ranks are here: nobody knows that yet.
    storeAddress(network, id);
    meetings.emplace(id.name,
                     Opened{id.key, Meeting(id.machine, getpid(), patience()), std::move(own)});
    constexpr uint64_t kOne = 1;
    (void)!write(wake.get(), &kOne, sizeof(kOne)); // the thread is to look at the socket, too
    return true;
  }

private:
  struct Opened {
    std::array<uint8_t, 8> key;
    Meeting meeting;
    Socket listener; // of the id's own, or none
  };

  [[noreturn]] void serve() {
    for (;;) {
      std::vector<pollfd> files = listening();
      const size_t numListening = files.size();
      for (const Connection &connection : connections)
        files.push_back({connection.socket.get(), POLLIN, 0});
      poll(files.data(), files.size(), untilNextDeadline());
      const auto now = Clock::now();
      std::lock_guard lock(mutex);
      // First who has come: a socket that listens may be closed with the last of its id's ranks.
      for (size_t i = 1; i < numListening; ++i)
        if (files[i].revents)
          accept(files[i].fd, now);
      auto file = files.begin() + static_cast<ptrdiff_t>(numListening);
      for (auto each = connections.begin(); file != files.end(); ++each)
        if ((file++)->revents)
          receive(*each, now);
      expire(now);
      connections.remove_if([](const Connection &each) { return each.isClosed; });
    }
  }

  /// The event first. What listens, but nobody may come by now, is not among them.
  std::vector<pollfd> listening() {
    // Reading the event resets it: what has been signalled so far is looked at in this round.
    uint64_t count = 0;
    (void)!read(wake.get(), &count, sizeof(count));
    std::vector<pollfd> files = {{wake.get(), POLLIN, 0}};
    // Without descriptors or memory, accept() would fail at once, again and again: pause it.
    if (Clock::now() < restUntil)
      return files;
    if (networkListener && mayCome(true))
      files.push_back({networkListener.get(), POLLIN, 0});
    if (!mayCome(false))
      return files;
    files.push_back({localListener.get(), POLLIN, 0});
    // A socket for each id of NCCL_COMM_ID; other threads add them.
    std::lock_guard lock(mutex);
    for (const auto &[name, opened] : meetings)
      if (opened.listener)
        files.push_back({opened.listener.get(), POLLIN, 0});
    return files;
  }

  /// Strangers take descriptors of the program: of the network, where anybody may be, no more than
  /// it can spare. Others wait in the system until those have said who they are, or have gone.
  bool mayCome(bool isOfNetwork) const {
    constexpr rlim_t kMostOfNetwork = 256, kShare = 8;
    constexpr size_t kMostOfMachine = 4096; // ranks of large jobs come at the same time
    size_t most = kMostOfMachine;
    rlimit limit{};
    if (isOfNetwork && getrlimit(RLIMIT_NOFILE, &limit) == 0)
      most = std::clamp<rlim_t>(limit.rlim_cur / kShare, 1, kMostOfNetwork);
    return static_cast<size_t>(std::ranges::count_if(connections, [&](const Connection &each) {
             return !each.isMember && each.isOfNetwork == isOfNetwork;
           })) < most;
  }

  int untilNextDeadline() {
    // Strangers are thrown out a second after their time at the latest; without anybody there,
    // nothing has to be looked at.
    constexpr int kMost = 60000, kWhenStrangersAreThere = 1000;
    const auto now = Clock::now();
    auto least = std::chrono::milliseconds(kMost);
    if (now < restUntil)
      least = kRest;
    std::lock_guard lock(mutex);
    for (const auto &[name, opened] : meetings)
      if (auto deadline = opened.meeting.deadline())
        // One millisecond more, as the duration is cut off: otherwise the last part of a
        // millisecond would be spent in a loop without waiting.
        least =
            std::min(least, std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - now) +
                                std::chrono::milliseconds(1));
    const bool hasStrangers = std::any_of(connections.begin(), connections.end(),
                                          [](const Connection &each) { return !each.isMember; });
    const auto wait = std::max<int64_t>(0, least.count());
    return static_cast<int>(hasStrangers ? std::min<int64_t>(wait, kWhenStrangersAreThere) : wait);
  }

  void accept(int listener, Clock::time_point now) {
    const bool isOfNetwork = listener == networkListener.get();
    while (mayCome(isOfNetwork)) {
      Socket socket = Socket::open(
          [&] { return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
      // Whoever comes while there is no descriptor, or no memory, is there again at once.
      if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
        restUntil = now + kRest;
      if (!socket)
        return;
      connections.push_back({std::move(socket), isOfNetwork, now, {}, 0, false, false, {}, 0});
    }
  }

  void receive(Connection &connection, Clock::time_point now) {
    // As much as there is, as several small messages may have come together.
    while (!connection.isClosed) {
      char *to = reinterpret_cast<char *>(&connection.incoming) + connection.numReceived;
      const ssize_t got =
          recv(connection.socket.get(), to, sizeof(FromRank) - connection.numReceived, 0);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
      // The peer has ended or been killed, or this was no rank.
      if (got <= 0)
        return close(connection);
      connection.numReceived += static_cast<size_t>(got);
      if (connection.numReceived < sizeof(FromRank))
        continue;
      connection.numReceived = 0;
      handle(connection, now);
    }
  }

  void handle(Connection &connection, Clock::time_point now) {
    constexpr uint32_t kMostRanks = 1 << 20;
    const FromRank &message = connection.incoming;
    auto found = meetings.find(message.name);
    // A connection belongs to one rank of one id, from its first message on.
    const bool isSame = message.name == connection.name && message.rank == connection.rank;
    const bool isExpected = connection.isMember ? isSame : message.kind == FromRankKind::Hello;
    // Anybody on the network may connect; who does not know the key is closed without a word, so
    // that nothing can be learnt or disturbed. All limits are checked before they are used.
    const bool isStranger = message.magic != kMessageMagic || found == meetings.end() ||
                            found->second.key != message.key || message.numRanks == 0 ||
                            message.numRanks > kMostRanks || !isExpected;
    if (isStranger)
      return close(connection);
    // A member before it is answered, so that the answer finds it; one that was there stays it.
    const bool isFirst = !connection.isMember && !connectionOf(message.name, message.rank);
    if (isFirst) {
      connection.isMember = true;
      connection.name = message.name;
      connection.rank = message.rank;
    }
    Meeting &meeting = found->second.meeting;
    if (!meeting.receive(message, now, sendOf(message.name))) {
      const FromRoot refusal = meeting.refusal();
      sendWhole(connection.socket.get(), &refusal, sizeof(refusal));
      connection.isMember = connection.isMember && !isFirst;
      close(connection);
    }
    forgetIfOver(message.name);
  }

  void close(Connection &connection) {
    connection.isClosed = true;
    auto found = connection.isMember ? meetings.find(connection.name) : meetings.end();
    if (found == meetings.end())
      return;
    found->second.meeting.leave(connection.rank, sendOf(connection.name));
    forgetIfOver(connection.name);
  }

  Meeting::Send sendOf(const std::array<uint8_t, 16> &name) {
    return [this, name](uint32_t rank, const FromRoot &message) {
      Connection *to = connectionOf(name, rank);
      // Whoever does not read some hundred bytes is noticed by its silence.
      if (to)
        sendWhole(to->socket.get(), &message, sizeof(message));
    };
  }

  Connection *connectionOf(const std::array<uint8_t, 16> &name, uint32_t rank) {
    for (Connection &each : connections)
      if (each.isMember && !each.isClosed && each.rank == rank && each.name == name)
        return &each;
    return nullptr;
  }

  void expire(Clock::time_point now) {
    // Names are collected first: forgetting erases from the map that is gone through.
    std::vector<std::array<uint8_t, 16>> names;
    for (auto &[name, opened] : meetings) {
      opened.meeting.expire(now, sendOf(name));
      names.push_back(name);
    }
    for (const auto &name : names)
      forgetIfOver(name);
    // Whoever does not say who it is within this time holds a descriptor for nothing.
    constexpr auto kStrangersPatience = std::chrono::seconds(10);
    for (Connection &each : connections)
      if (!each.isMember && now - each.since > kStrangersPatience)
        each.isClosed = true;
  }

  void forgetIfOver(const std::array<uint8_t, 16> &name) {
    auto found = meetings.find(name);
    if (found != meetings.end() && found->second.meeting.isOver())
      meetings.erase(found);
  }

  static constexpr auto kRest = std::chrono::milliseconds(100);

  std::array<uint8_t, 8> rootName{};
  Address network;
  Socket localListener, networkListener; // the latter may be none
  Socket wake;                           // an event
  Clock::time_point restUntil;           // nobody is accepted
  std::list<Connection> connections;
  std::mutex mutex;
  std::map<std::array<uint8_t, 16>, Opened> meetings;
};

/// Its thread may use it as long as the process lives.
struct OwnRoot {
  OwnRoot() : isThere(root.start()) {}

  Root root;
  const bool isThere;
};

constinit PerProcess<OwnRoot> ownRoot;

} // namespace

bool serveAsRoot(IdLayout &id) {
  OwnRoot &own = ownRoot.get();
  return own.isThere && own.root.open(id);
}

std::chrono::milliseconds patience() {
  const std::string given = setting("OCCL_NCCL_FALLBACK_SECONDS").value_or("");
  const double seconds = std::atof(given.c_str());
  constexpr double kDefault = 300, kMost = 1e6;
  return std::chrono::milliseconds(
      static_cast<int64_t>(1000 * (seconds > 0 ? std::min(seconds, kMost) : kDefault)));
}

} // namespace occl::nccl
