// What the kernels of a simulated cluster do: connections, and the way of bytes.
#include "test/simulation/tcp_network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace occl::simulation {

namespace {

using namespace std::chrono_literals;

/// As Linux does: the first repetition of data, of a request to connect, and of a keepalive.
constexpr Duration kFirstRepetition = 200ms, kFirstAsk = 1s, kKeepalive = 1s;
/// net.core.somaxconn
constexpr size_t kMostBacklog = 4096;
/// After so long connect() gives up.
constexpr Duration kLongestAsk = 64s;
constexpr Time kNever{};

} // namespace

uint32_t Tcp::readiness() const {
  if (state == State::Failed)
    return POLLIN | POLLOUT | POLLERR;
  if (state != State::Connected)
    return 0;
  uint32_t ready = unread() != 0 || hasEnded || isReset ? POLLIN : 0;
  if (isReset || !wasFull)
    ready |= POLLOUT;
  return ready | (hasEnded ? POLLRDHUP : 0u) | (isReset ? POLLERR | POLLHUP : 0u);
}

TcpNetwork::TcpNetwork(World &world) : world(world) {}

Address TcpNetwork::addressOf(uint32_t machine) {
  Address address;
  const uint32_t number = machine + 1;
  address.host = {0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0xff,
                  0xff,
                  10,
                  static_cast<uint8_t>(number >> 16),
                  static_cast<uint8_t>(number >> 8),
                  static_cast<uint8_t>(number)};
  return address;
}

uint32_t TcpNetwork::machineOf(const Address &address) {
  return (uint32_t{address.host[13]} << 16 | uint32_t{address.host[14]} << 8 | address.host[15]) -
         1;
}

void TcpNetwork::after(Duration delay, std::function<void()> act) {
  world.at(world.sinceBegin() + delay, std::move(act));
}

Duration TcpNetwork::delay() {
  return jitter == 0ns
             ? latency
             : latency + Duration(world.random()() % static_cast<uint64_t>(jitter.count()));
}

// --- What the process has.

template <class Kind> std::shared_ptr<Kind> TcpNetwork::find(int descriptor) const {
  const auto index = static_cast<size_t>(descriptor - kFirst);
  return index < files.size() ? std::dynamic_pointer_cast<Kind>(files[index]) : nullptr;
}

int TcpNetwork::add(std::shared_ptr<File> file) {
  file->machine = world.currentMachine();
  ++numOpen[file->machine];
  if (free.empty()) {
    files.push_back(std::move(file));
    return kFirst + static_cast<int>(files.size() - 1);
  }
  const int descriptor = free.back();
  free.pop_back();
  files[static_cast<size_t>(descriptor - kFirst)] = std::move(file);
  return descriptor;
}

int TcpNetwork::makeSocket() { return add(std::make_shared<Tcp>()); }
int TcpNetwork::makeEpoll() { return add(std::make_shared<Epoll>()); }
int TcpNetwork::makeEvent() { return add(std::make_shared<Event>()); }

int TcpNetwork::close(int descriptor) {
  const auto file = find<File>(descriptor);
  if (!file)
    return -EBADF;
  files[static_cast<size_t>(descriptor - kFirst)] = nullptr;
  free.push_back(descriptor);
  end(file);
  return 0;
}

void TcpNetwork::closeAllOf(uint32_t machine) {
  for (size_t i = 0; i < files.size() && numOpen[machine] != 0; ++i)
    if (files[i] && files[i]->machine == machine)
      close(kFirst + static_cast<int>(i));
}

void TcpNetwork::end(const std::shared_ptr<File> &file) {
  file->isOpen = false;
  --numOpen[file->machine];
  for (const auto &[epoll, descriptor] : file->watchers)
    if (const auto instance = epoll.lock())
      instance->entries.erase(descriptor);
  file->watchers.clear();
  if (const auto tcp = std::dynamic_pointer_cast<Tcp>(file))
    end(tcp);
  if (const auto listener = std::dynamic_pointer_cast<Listener>(file))
    for (const auto &queued : listener->queue) {
      queued->isOpen = false;
      transmit(queued, {Packet::Kind::Reset, {}});
    }
}

/// What was not read is lost, and the other side learns that.
void TcpNetwork::end(const std::shared_ptr<Tcp> &tcp) {
  if (tcp->state != Tcp::State::Connected || tcp->isReset)
    return;
  if (tcp->unread() != 0)
    transmit(tcp, {Packet::Kind::Reset, {}});
  else if (!std::exchange(tcp->saysNoMore, true))
    transmit(tcp, {Packet::Kind::End, {}});
  tcp->in = {};
  tcp->inBegin = 0;
  if (!tcp->held.empty())
    lingering.insert(tcp);
}

int TcpNetwork::bind(int descriptor, const Address &address) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp)
    return -EBADF;
  tcp->own = address;
  uint16_t &last = lastPort[tcp->machine];
  if (tcp->own.port == 0)
    tcp->own.port = last = static_cast<uint16_t>(last < 32768 || last >= 65000 ? 32768 : last + 1);
  return 0;
}

int TcpNetwork::listen(int descriptor, int backlog) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp)
    return -EBADF;
  auto &registered = listeners[{tcp->machine, tcp->own.port}];
  if (const auto other = registered.lock(); other && other->isOpen)
    return -EADDRINUSE;
  auto listener = std::make_shared<Listener>();
  listener->machine = tcp->machine;
  listener->own = tcp->own;
  listener->backlog = std::min<size_t>(static_cast<size_t>(backlog), kMostBacklog);
  registered = listener;
  files[static_cast<size_t>(descriptor - kFirst)] = listener;
  return 0;
}

int TcpNetwork::accept(int descriptor) {
  const auto listener = find<Listener>(descriptor);
  if (!listener)
    return -EINVAL;
  if (listener->queue.empty())
    return -EAGAIN;
  auto tcp = std::move(listener->queue.front());
  listener->queue.pop_front();
  return add(std::move(tcp));
}

int TcpNetwork::addressOf(int descriptor, bool ofPeer, Address &address) {
  if (const auto listener = find<Listener>(descriptor); listener && !ofPeer) {
    address = listener->own;
    return 0;
  }
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp || (ofPeer && tcp->state != Tcp::State::Connected))
    return -ENOTCONN;
  address = ofPeer ? tcp->other : tcp->own;
  return 0;
}

int TcpNetwork::error(int descriptor) {
  const auto tcp = find<Tcp>(descriptor);
  return tcp ? std::exchange(tcp->error, 0) : EBADF;
}

// --- Connecting.

int TcpNetwork::connect(int descriptor, const Address &to) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp || tcp->state != Tcp::State::Fresh)
    return -EBADF;
  const uint16_t port = tcp->own.port;
  tcp->own = addressOf(tcp->machine);
  tcp->own.port = port;
  if (port == 0)
    bind(descriptor, tcp->own);
  tcp->other = to;
  tcp->state = Tcp::State::Connecting;
  ask(tcp, kFirstAsk);
  return -EINPROGRESS;
}

/// A request that is lost, or not answered, is repeated.
void TcpNetwork::ask(const std::shared_ptr<Tcp> &from, Duration pause) {
  if (!from->isOpen || from->state != Tcp::State::Connecting)
    return;
  if (pause > kLongestAsk)
    return fail(*from, ETIMEDOUT);
  if (machineOf(from->other) >= world.numMachines())
    return fail(*from, ENETUNREACH);
  if (!works(*from))
    return after(pause, [this, from, pause] { ask(from, 2 * pause); });
  after(delay(), [this, from, pause] { welcome(from, pause); });
}

/// The request has arrived.
void TcpNetwork::welcome(const std::shared_ptr<Tcp> &from, Duration pause) {
  const auto isLost = [&] { after(pause, [this, from, pause] { ask(from, 2 * pause); }); };
  if (!works(*from))
    return isLost();
  const uint32_t machine = machineOf(from->other);
  const auto found = listeners.find({machine, from->other.port});
  const auto listener = found == listeners.end() ? nullptr : found->second.lock();
  if (!listener || !listener->isOpen)
    return after(delay(), [this, from] { fail(*from, ECONNREFUSED); });
  if (listener->queue.size() + listener->numComing >= listener->backlog)
    return isLost();
  ++listener->numComing;
  // The other end is there; this side learns of it first, and may send at once.
  auto there = std::make_shared<Tcp>();
  there->machine = machine;
  there->own = from->other;
  there->other = from->own;
  there->peer = from;
  there->state = Tcp::State::Connected;
  there->lastHeard = from->lastHeard = world.now();
  const Duration back = delay(), again = delay();
  after(back, [this, from, there] {
    if (!from->isOpen || from->state != Tcp::State::Connecting)
      return transmit(from, {Packet::Kind::Reset, {}});
    from->peer = there;
    from->state = Tcp::State::Connected;
    notify(*from);
  });
  from->lastArrival = world.now() + back + again; // nothing that it sends comes before that
  after(back + again, [this, listener, there] {
    --listener->numComing;
    if (!listener->isOpen) {
      there->isOpen = false;
      return transmit(there, {Packet::Kind::Reset, {}});
    }
    listener->queue.push_back(there);
    notify(*listener);
  });
}

void TcpNetwork::fail(Tcp &tcp, int error) {
  if (tcp.state != Tcp::State::Connecting)
    return;
  tcp.state = Tcp::State::Failed;
  tcp.error = error;
  notify(tcp);
}

// --- Bytes.

ssize_t TcpNetwork::send(int descriptor, std::span<const std::byte> bytes) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp)
    return -EBADF;
  if (tcp->isReset)
    return -(tcp->error != 0 ? std::exchange(tcp->error, 0) : EPIPE);
  if (tcp->state != Tcp::State::Connected || tcp->saysNoMore)
    return tcp->state == Tcp::State::Connecting ? -EAGAIN : -EPIPE;
  // What the other kernel has room for, whatever its process does.
  const auto there = tcp->peer.lock();
  const uint64_t used = tcp->inFlight + (there ? there->unread() : 0);
  const uint64_t room = used < kWindow ? kWindow - used : 0;
  if (room == 0) {
    tcp->wasFull = true;
    return -EAGAIN;
  }
  const size_t taken = std::min<size_t>(room, bytes.size());
  tcp->wasFull = taken < bytes.size();
  tcp->inFlight += taken;
  Traffic &own = traffic[tcp->machine];
  ++own.sent;
  own.bytesSent += taken;
  transmit(tcp,
           {Packet::Kind::Bytes, {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken)}});
  return static_cast<ssize_t>(taken);
}

ssize_t TcpNetwork::receive(int descriptor, std::span<std::byte> bytes, bool peeks) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp)
    return -EBADF;
  const size_t got = std::min<size_t>(tcp->unread(), bytes.size());
  if (got == 0 && tcp->isReset)
    return tcp->error != 0 ? -std::exchange(tcp->error, 0) : 0;
  if (got == 0)
    return tcp->hasEnded ? 0 : tcp->state == Tcp::State::Failed ? -ECONNREFUSED : -EAGAIN;
  std::copy_n(tcp->in.begin() + static_cast<ptrdiff_t>(tcp->inBegin), got, bytes.begin());
  if (peeks)
    return static_cast<ssize_t>(got);
  tcp->inBegin += got;
  if (tcp->unread() == 0) {
    tcp->in.clear();
    tcp->inBegin = 0;
  }
  // The other side learns that there is room again.
  if (const auto there = tcp->peer.lock(); there && there->wasFull)
    after(delay(), [this, there] {
      if (std::exchange(there->wasFull, false))
        notify(*there);
    });
  return static_cast<ssize_t>(got);
}

int TcpNetwork::shutdown(int descriptor) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp || tcp->state != Tcp::State::Connected)
    return -ENOTCONN;
  tcp->hasEnded = true;
  if (!std::exchange(tcp->saysNoMore, true))
    transmit(tcp, {Packet::Kind::End, {}});
  notify(*tcp);
  return 0;
}

void TcpNetwork::transmit(const std::shared_ptr<Tcp> &from, Packet packet) {
  if (!works(*from) && from->askedSince == kNever)
    from->askedSince = world.now();
  // Behind what is repeated, too.
  if (!from->held.empty()) {
    from->held.push_back(std::move(packet));
    return;
  }
  // Packets of a connection do not overtake each other.
  const Time arrival = std::max(world.now() + delay(), from->lastArrival);
  from->lastArrival = arrival;
  auto carried = std::make_shared<Packet>(std::move(packet));
  world.at(arrival - World::kBegin, [this, from, carried] { arrive(from, *carried); });
}

void TcpNetwork::arrive(const std::shared_ptr<Tcp> &from, Packet &packet) {
  const auto to = from->peer.lock();
  if (!from->held.empty() || isCut(from->machine, machineOf(from->other))) {
    // Who resets a connection keeps nothing to be repeated.
    if (packet.kind != Packet::Kind::Reset)
      from->held.push_back(std::move(packet));
    if (!from->isOpen && !from->held.empty())
      lingering.insert(from);
    return;
  }
  from->inFlight -= std::min<uint64_t>(from->inFlight, packet.bytes.size());
  if (to)
    take(to, packet);
}

void TcpNetwork::take(const std::shared_ptr<Tcp> &to, Packet &packet) {
  to->lastHeard = world.now();
  if (to->isReset)
    return;
  // Nobody will read it: who has sent it learns that.
  if (!to->isOpen && packet.kind == Packet::Kind::Bytes) {
    to->isReset = true;
    return transmit(to, {Packet::Kind::Reset, {}});
  }
  switch (packet.kind) {
  case Packet::Kind::Bytes: {
    Traffic &own = traffic[to->machine];
    ++own.received;
    own.bytesReceived += packet.bytes.size();
    to->in.insert(to->in.end(), packet.bytes.begin(), packet.bytes.end());
    break;
  }
  case Packet::Kind::End:
    to->hasEnded = true;
    break;
  case Packet::Kind::Reset:
    to->isReset = true;
    to->error = ECONNRESET;
    break;
  }
  notify(*to);
}

int TcpNetwork::unacknowledged(int descriptor) {
  const auto tcp = find<Tcp>(descriptor);
  return tcp ? static_cast<int>(tcp->inFlight) : -EBADF;
}

// --- Paths that are cut.

bool TcpNetwork::isCut(uint32_t from, uint32_t to) const {
  return cuts.contains({from, to}) || isolated.contains(from) || isolated.contains(to);
}

bool TcpNetwork::works(const Tcp &tcp) const {
  const uint32_t other = machineOf(tcp.other);
  return !isCut(tcp.machine, other) && !isCut(other, tcp.machine);
}

void TcpNetwork::forAll(const std::function<void(const std::shared_ptr<Tcp> &)> &act) {
  const auto closed = lingering;
  for (const auto &tcp : closed)
    act(tcp);
  for (const auto &file : files)
    if (const auto tcp = std::dynamic_pointer_cast<Tcp>(file);
        tcp && tcp->state == Tcp::State::Connected)
      act(tcp);
}

void TcpNetwork::cut(uint32_t from, uint32_t to) {
  cuts.emplace(Path{from, to}, world.now());
  noteCut();
}

void TcpNetwork::isolate(uint32_t machine) {
  isolated.insert(machine);
  noteCut();
}

/// The last answer was one to what was sent last, or to a keepalive.
void TcpNetwork::noteCut() {
  forAll([this](const std::shared_ptr<Tcp> &tcp) {
    if (works(*tcp) || tcp->askedSince != kNever)
      return;
    const Duration ago(world.random()() % static_cast<uint64_t>(kKeepalive.count()));
    tcp->lastHeard = std::max(tcp->lastHeard, world.now() - ago);
    if (tcp->inFlight != 0)
      tcp->askedSince = world.now();
  });
}

/// What was lost is repeated some time later: the longer the path was cut, the later.
void TcpNetwork::heal(uint32_t from, uint32_t to) {
  cuts.erase({from, to});
  forAll([this](const std::shared_ptr<Tcp> &tcp) {
    if (isCut(tcp->machine, machineOf(tcp->other)) || tcp->held.empty() ||
        std::exchange(tcp->repeats, true))
      return;
    const Duration most = std::max<Duration>(kFirstRepetition, world.now() - tcp->askedSince);
    after(Duration(world.random()() % static_cast<uint64_t>(most.count())),
          [this, tcp] { repeat(tcp); });
  });
}

void TcpNetwork::repeat(const std::shared_ptr<Tcp> &from) {
  from->repeats = false;
  if (isCut(from->machine, machineOf(from->other)))
    return; // again; the next heal() repeats it
  lingering.erase(from);
  from->askedSince = kNever;
  from->lastHeard = world.now();
  for (Packet &packet : std::exchange(from->held, {}))
    transmit(from, std::move(packet));
}

/// As far as liveness.cpp asks.
int TcpNetwork::info(int descriptor, tcp_info &info) {
  const auto tcp = find<Tcp>(descriptor);
  if (!tcp)
    return -EBADF;
  const uint32_t other = machineOf(tcp->other);
  const bool hears = !isCut(other, tcp->machine), isAnswered = works(*tcp) && tcp->held.empty();
  if (isAnswered)
    tcp->askedSince = kNever;
  const Time now = world.now();
  // Whoever is heard answers each keepalive, and repeats what it has to say itself.
  const Duration silent =
      hears ? std::min<Duration>(now - tcp->lastHeard, kKeepalive) : Duration(now - tcp->lastHeard);
  info = {};
  info.tcpi_last_ack_recv =
      static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(silent).count());
  // One more each second.
  const auto number = [now](Time since, Duration first) {
    return static_cast<uint8_t>(now - since < first ? 0 : 1 + (now - since - first) / kKeepalive);
  };
  if (!isAnswered && tcp->askedSince != kNever)
    info.tcpi_retransmits = number(tcp->askedSince, kFirstRepetition);
  else if (!isAnswered)
    info.tcpi_probes = number(tcp->lastHeard, kKeepalive);
  return 0;
}

// --- Waiting.

/// All threads of its machine that wait for sockets look again.
void TcpNetwork::notify(File &file) {
  const uint32_t ready = file.readiness();
  std::erase_if(file.watchers, [&](const auto &watcher) {
    const auto epoll = watcher.first.lock();
    if (!epoll)
      return true;
    Epoll::Entry &entry = epoll->entries.at(watcher.second);
    entry.pending |= ready & (entry.event.events | POLLERR | POLLHUP);
    return false;
  });
  world.wake(&world.machine(file.machine));
}

int TcpNetwork::poll(std::span<pollfd> polled, int milliseconds) {
  const Time deadline =
      milliseconds < 0 ? Time::max() : world.now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    int numReady = 0;
    for (pollfd &each : polled) {
      const auto file = find<File>(each.fd);
      each.revents = static_cast<short>(
          file ? file->readiness() & (static_cast<uint32_t>(each.events) | POLLERR | POLLHUP)
               : POLLNVAL);
      numReady += each.revents != 0;
    }
    if (numReady != 0 || world.now() >= deadline)
      return numReady;
    world.park(&world.machine(world.currentMachine()), deadline);
  }
}

int TcpNetwork::control(int epoll, int operation, int descriptor, const epoll_event *event) {
  const auto instance = find<Epoll>(epoll);
  const auto file = find<File>(descriptor);
  if (!instance || !file || operation != EPOLL_CTL_ADD)
    return -EINVAL;
  instance->entries[descriptor] = {*event, file->readiness() & event->events};
  file->watchers.emplace_back(instance, descriptor);
  return 0;
}

int TcpNetwork::wait(int epoll, std::span<epoll_event> events, int milliseconds) {
  const auto instance = find<Epoll>(epoll);
  if (!instance)
    return -EBADF;
  const Time deadline =
      milliseconds < 0 ? Time::max() : world.now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    size_t found = 0;
    for (auto &[descriptor, entry] : instance->entries) {
      const auto file = find<File>(descriptor);
      if (!file || found == events.size())
        continue;
      // Only edges are told, unless it is asked otherwise.
      const bool isEdge = (entry.event.events & EPOLLET) != 0;
      const uint32_t told =
          isEdge ? std::exchange(entry.pending, 0) : file->readiness() & entry.event.events;
      if (told == 0)
        continue;
      events[found] = entry.event;
      events[found++].events = told;
    }
    if (found != 0 || world.now() >= deadline)
      return static_cast<int>(found);
    world.park(&world.machine(world.currentMachine()), deadline);
  }
}

ssize_t TcpNetwork::write(int descriptor, uint64_t count) {
  const auto event = find<Event>(descriptor);
  if (!event)
    return -EBADF;
  event->count += count;
  notify(*event);
  return sizeof count;
}

} // namespace occl::simulation
