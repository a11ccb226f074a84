// TCP between the machines of a simulated cluster, as the runtime sees it through its system calls,
// which wrapped_calls.cpp leads here. Each connection delivers bytes in order, after the latency of
// its path; what a cut path loses is repeated, ever more seldom, once the path works again. There
// is no limit of bytes a second.
#pragma once

#include "runtime/net/rendezvous/socket.h"
#include "test/simulation/world.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <poll.h>
#include <set>
#include <span>
#include <sys/epoll.h>
#include <sys/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

struct tcp_info;

namespace occl::simulation {

using net::Address;

struct Epoll;

/// What is on its way from one end of a connection to the other.
struct Packet {
  enum class Kind : uint8_t { Bytes, End, Reset } kind = Kind::Bytes;
  std::vector<std::byte> bytes;
};

/// A socket, an epoll instance or an eventfd.
struct File {
  enum class Kind : uint8_t { Tcp, Listener, Epoll, Event };

  Kind kind = Kind::Tcp;
  uint32_t machine = 0;
  bool isOpen = true; // the process has it
  std::vector<std::pair<std::weak_ptr<Epoll>, int>> watchers;
  virtual ~File() = default;
  virtual uint32_t readiness() const = 0; // as of poll()
};

/// Also before it is connected.
struct Tcp final : File {
  enum class State : uint8_t { Fresh, Connecting, Connected, Failed };

  State state = State::Fresh;
  Address own, other;
  std::weak_ptr<Tcp> peer;
  int error = 0; // not asked for yet
  // What has arrived and was not read.
  std::vector<std::byte> in;
  size_t inBegin = 0;
  bool hasEnded = false, isReset = false;
  bool saysNoMore = false; // this side has said its End
  uint64_t inFlight = 0;   // bytes that it has sent and the other kernel does not have
  bool wasFull = false;
  std::deque<Packet> held; // behind a cut path
  bool repeats = false;    // and the repetition is on its way
  Time lastArrival{};      // of what it has sent
  Time lastHeard{};        // of the other kernel
  Time askedSince{};       // something is unanswered; 0: nothing

  uint64_t unread() const { return in.size() - inBegin; }
  uint32_t readiness() const override;
};

struct Listener final : File {
  Address own;
  std::deque<std::shared_ptr<Tcp>> queue; // to be accepted
  size_t backlog = 0, numComing = 0;      // numComing: answered, and not in the queue yet
  uint32_t readiness() const override { return queue.empty() ? 0 : POLLIN; }
};

struct Epoll final : File {
  struct Entry {
    epoll_event event{};
    uint32_t pending = 0;
  };
  std::map<int, Entry> entries; // by descriptor
  uint32_t readiness() const override { return 0; }
};

struct Event final : File {
  uint64_t count = 0;
  uint32_t readiness() const override { return count != 0 ? POLLIN : 0; }
};

/// What a machine has sent and received: records of the code above TCP, that is, calls of send().
struct Traffic {
  uint64_t sent = 0, received = 0, bytesSent = 0, bytesReceived = 0;
};

class TcpNetwork {
public:
  explicit TcpNetwork(World &world);

  /// One way; each packet takes up to so much more.
  Duration latency = std::chrono::microseconds(25), jitter{0};

  static Address addressOf(uint32_t machine);
  const Traffic &trafficOf(uint32_t machine) { return traffic[machine]; }

  // What may happen.
  void cut(uint32_t from, uint32_t to);
  void heal(uint32_t from, uint32_t to);
  bool isCut(uint32_t from, uint32_t to) const;
  /// For good, from and to all.
  void isolate(uint32_t machine);
  void closeAllOf(uint32_t machine);

  // System calls of the running thread; negative: -errno.
  static bool isOwn(int descriptor) { return descriptor >= kFirst; }
  int makeSocket();
  int makeEpoll();
  int makeEvent();
  int bind(int descriptor, const Address &address);
  int listen(int descriptor, int backlog);
  int connect(int descriptor, const Address &to);
  int accept(int descriptor);
  ssize_t send(int descriptor, std::span<const std::byte> bytes);
  ssize_t receive(int descriptor, std::span<std::byte> bytes, bool peeks);
  int shutdown(int descriptor);
  int close(int descriptor);
  int addressOf(int descriptor, bool ofPeer, Address &address);
  int error(int descriptor);
  int info(int descriptor, tcp_info &info);
  int unacknowledged(int descriptor);
  int poll(std::span<pollfd> polled, int milliseconds);
  int control(int epoll, int operation, int descriptor, const epoll_event *event);
  int wait(int epoll, std::span<epoll_event> events, int milliseconds);
  ssize_t write(int descriptor, uint64_t count);

private:
  static constexpr int kFirst = 1 << 20;
  static constexpr uint64_t kWindow = 256 << 10;
  using Path = std::pair<uint32_t, uint32_t>;

  template <class Kind> std::shared_ptr<Kind> find(int descriptor) const;
  int add(std::shared_ptr<File> file);
  void end(const std::shared_ptr<File> &file);
  void end(const std::shared_ptr<Tcp> &tcp);
  void notify(File &file);
  void after(Duration delay, std::function<void()> act);
  Duration delay();
  void transmit(const std::shared_ptr<Tcp> &from, Packet packet);
  void arrive(const std::shared_ptr<Tcp> &from, Packet &packet);
  void take(const std::shared_ptr<Tcp> &to, Packet &packet);
  void repeat(const std::shared_ptr<Tcp> &from);
  void ask(const std::shared_ptr<Tcp> &from, Duration pause);
  void welcome(const std::shared_ptr<Tcp> &from, Duration pause);
  void fail(Tcp &tcp, int error);
  bool works(const Tcp &tcp) const; // both ways
  void forAll(const std::function<void(const std::shared_ptr<Tcp> &)> &act);
  void noteCut();
  static uint32_t machineOf(const Address &address);

  World &world;
  std::vector<std::shared_ptr<File>> files; // by descriptor
  std::vector<int> free;
  std::unordered_map<uint32_t, uint32_t> numOpen; // by machine
  std::set<std::shared_ptr<Tcp>> lingering;       // closed, with something behind a cut path
  std::map<std::pair<uint32_t, uint16_t>, std::weak_ptr<Listener>> listeners;
  std::unordered_map<uint32_t, uint16_t> lastPort;
  std::map<Path, Time> cuts;
  std::set<uint32_t> isolated;
  std::unordered_map<uint32_t, Traffic> traffic;
};

} // namespace occl::simulation
