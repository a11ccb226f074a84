// The two threads of a network: one sends what has changed in memory, one places what has come.
#include "runtime/net/network.h"

#include "runtime/sync/background_thread.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace occl::net {

namespace {

using namespace std::chrono_literals;

/// So long after something has come this thread stays awake for kernels, which poll for the rest.
constexpr auto kAwake = 200us;
/// Also how long a peer whose machine is silent remains unnoticed after its time.
constexpr auto kCheckPeers = 100ms;
/// How long the receiving thread naps between looking at endpoints that must be polled. It lets
/// others run, but does not sleep, for kAlert after something has come; an idle communicator costs
/// about a thousand looks a second.
constexpr std::chrono::nanoseconds kAlert = 100us, kLately = 20ms, kNapLately = 20us,
                                   kNapIdle = 1ms;

/// Before another try to find memory.
constexpr auto kUntilMemory = 1ms;

/// After looking in vain since `last`.
void nap(SteadyClock::time_point last) {
  const auto since = SteadyClock::now() - last;
  if (since < kAlert)
    yieldProcessor();
  else
    sleepFor(since < kLately ? kNapLately : kNapIdle);
}

} // namespace

struct Network::Threads {
  std::shared_ptr<bootstrap::SharedBell> bell;
  bootstrap::Descriptor events, wakeUp;
  Atomic<bool> areStopping{false};
  // The receiving thread's.
  std::vector<bool> isReady; // by index of the peer: something of it may be left
  bool mayHaveMore = true;
  SteadyClock::time_point lastHandled{}, awakeUntil{};
  Deadline nextCheck{kCheckPeers};
  Thread sender, receiver;
};

Status Network::start(std::shared_ptr<bootstrap::SharedBell> bell) {
  auto made = std::make_shared<Threads>();
  // One epoll instance watches all peers, and an eventfd by which stop() ends the receiver.
  made->bell = std::move(bell);
  made->events = bootstrap::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  made->wakeUp = bootstrap::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->events.valid() || !made->wakeUp.valid())
    return systemError("no descriptors for the network", errno);
  const auto watch = [&](int descriptor, uint32_t what, uint64_t name) {
    epoll_event event{.events = what, .data = {.u64 = name}};
    return epoll_ctl(made->events.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  };
  // The number behind the last peer's stands for the eventfd.
  bool isWatched = watch(made->wakeUp.get(), EPOLLIN, peers.size());
  // Only edges are told: a peer is ready until its endpoint has nothing left.
  for (size_t i = 0; i < peers.size(); ++i)
    for (int descriptor : peers[i].remote.endpoint->descriptors())
      isWatched = isWatched && watch(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, i);
  if (!isWatched)
    return systemError("cannot watch the network's descriptors", errno);
  // Frames may have come before the descriptors were watched, so all peers are looked at first.
  made->isReady.assign(peers.size(), true);
  // The threads use these members from their first instruction on.
  threads = std::move(made);
  try {
    threads->sender = startInBackground([this] { runSender(); });
    threads->receiver = startInBackground([this] { runReceiver(); });
  } catch (const std::system_error &error) {
    stop();
    return systemError("starting a thread for the network", error.code().value());
  }
  return {};
}

void Network::wakeSender() {
  if (threads)
    threads->bell->bell().ring();
}

/// Of one of the threads: round() may find no memory. Then something of what has come, or of what
/// is to be told, may be lost, so the communicator fails, at the latest in the first round after
/// there is one.
template <class Round> void Network::attempt(Round round) {
  try {
    round();
  } catch (const std::bad_alloc &) {
    lacksMemory.store(true, std::memory_order_release);
    sleepFor(kUntilMemory);
  }
  if (lacksMemory.load(std::memory_order_acquire))
    failForMemory();
}

void Network::failForMemory() {
  try {
    std::function<void(const Status &)> fail;
    {
      std::lock_guard lock(mutex);
      fail = owner.fail;
      changed.notify_all();
    }
    if (fail)
      fail(outOfMemory());
  } catch (const std::bad_alloc &) { // the next round tells it
  }
}

void Network::runSender() {
  Doorbell &bell = threads->bell->bell();
  while (!threads->areStopping.load(std::memory_order_acquire))
    attempt([&] {
      send();
      // Kernels or the voter want another look at once.
      if (pause() == 0ns)
        return;
      const uint32_t ticket = bell.prepareSleep();
      send(); // what changed before whoever changed it could see that this thread will sleep
      if (!threads->areStopping.load(std::memory_order_acquire))
        bell.sleep(ticket, pause());
    });
  farewell();
}

/// A socket that is closed while something is under way in either direction may lose it.
void Network::farewell() {
  // Peers must have acknowledged everything before the sockets close.
  const Deadline deadline(kFarewell);
  for (bool isOver = false; !isOver && !deadline.passed();) {
    attempt([&] { isOver = send() && isDelivered(); });
    if (!isOver)
      sleepFor(200us);
  }
}

/// Whether some endpoint must be polled that is not down.
bool Network::mustPoll() const {
  return std::ranges::any_of(peers, [](const Peer &peer) {
    return !peer.wasDown && peer.remote.endpoint->mustBePolled();
  });
}

/// Returns when some peer may be ready, or is to be looked at. False: the thread is to end.
bool Network::awaitFrames() {
  std::array<epoll_event, 64> events;
  // The thread does not sleep in epoll_wait() while more may come without a descriptor's help.
  const bool polls = mustPoll(),
             stays = threads->mayHaveMore || polls || SteadyClock::now() < threads->awakeUntil;
  if (threads->mayHaveMore)
    threads->lastHandled = SteadyClock::now();
  else if (polls)
    nap(threads->lastHandled);
  const int found = epoll_wait(threads->events.get(), events.data(), events.size(),
                               stays ? 0 : static_cast<int>(kCheckPeers.count()));
  if (found > 0 && hasDeviceWords.load(std::memory_order_relaxed))
    threads->awakeUntil = SteadyClock::now() + kAwake;
  bool isStopped = false;
  for (int e = 0; e < found; ++e) {
    const size_t index = events[e].data.u64;
    // The eventfd has the number behind the last peer's.
    isStopped |= index == peers.size();
    if (index == peers.size())
      continue;
    threads->isReady[index] = true;
    // A sender that has found the connection full sleeps until there is room.
    if ((events[e].events & EPOLLOUT) && peers[index].isFull.load(std::memory_order_seq_cst))
      wakeSender();
  }
  return !isStopped;
}

void Network::handleFrames() {
  std::vector<bool> &isReady = threads->isReady;
  threads->mayHaveMore = true; // also if there is no memory for the rest of this
  // However busy the others are.
  if (threads->nextCheck.passed()) {
    threads->nextCheck = Deadline(kCheckPeers);
    for (size_t i = 0; i < peers.size(); ++i) {
      peers[i].remote.endpoint->checkPeer();
      isReady[i] = true; // sees that it is down
    }
  }
  bool more = false;
  const bool polls = mustPoll();
  // Endpoints without helpful descriptors are asked in every round.
  for (size_t i = 0; i < peers.size(); ++i)
    if (isReady[i] || (polls && peers[i].remote.endpoint->mustBePolled()))
      more |= isReady[i] = receive(i);
  threads->mayHaveMore = more;
}

void Network::runReceiver() {
  while (awaitFrames())
    attempt([&] { handleFrames(); });
}

void Network::stop() {
  if (!threads)
    return;
  // The sender ends first: its farewell needs a receiver that still takes frames.
  threads->areStopping.store(true, std::memory_order_release);
  threads->bell->bell().ringAll();
  if (threads->sender.joinable())
    threads->sender.join();
  // The receiver sleeps on descriptors alone, so the eventfd wakes it.
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t written = write(threads->wakeUp.get(), &once, sizeof once);
  if (threads->receiver.joinable())
    threads->receiver.join();
  threads.reset();
  // The farewell is over: of a communicator that works the rest may still get through.
  if (own && !owner.failure().ok())
    for (Peer &peer : peers)
      peer.remote.endpoint->abandon();
}

} // namespace occl::net
