#include "runtime/net/transport/nccl_net/testing/sockets.h"

#include "runtime/net/transport/nccl_net/testing/mood.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::net::test_plugin {
namespace {

using namespace nccl;

std::atomic<Logger> theLogger{nullptr};

#define SAY(level, ...) theLogger.load()(level, ~0ul, __func__, __LINE__, __VA_ARGS__)

[[noreturn]] void misused(const char *how) {
  std::fprintf(stderr, "the plugin of tests is misused: %s\n", how);
  std::abort();
}

/// One thread at a time.
class Busy {
public:
  explicit Busy(std::atomic<bool> *flag) : flag(flag) {
    if (flag && flag->exchange(true))
      misused("two threads at a time");
  }
  ~Busy() {
    if (flag)
      flag->store(false);
  }

private:
  std::atomic<bool> *flag;
};

struct Context {
  std::atomic<bool> isBusy{false};
};

struct Registration {
  std::byte *data;
  size_t bytes;
};

struct Comm;
struct Request {
  Comm *comm = nullptr;
  std::byte *data = nullptr;
  size_t room = 0;       // at data
  uint64_t size = 0;     // of what is sent, or comes: it is sent before it
  uint64_t numMoved = 0; // of that, and of its 8 bytes
  bool isDone = false;
};

struct Comm {
  static constexpr uint64_t kAlive = 0x6f63636c6e657431;
  uint64_t magic = kAlive;
  Context *context = nullptr;
  int socket = -1;
  enum { Listening, Connecting, Sending, Receiving } kind = Listening;
  std::atomic<bool> isBusy{false};
  Mood mood = Mood::now();
  std::deque<std::unique_ptr<Request>> requests; // in order, those that were not tested as done
  std::set<const Registration *> registrations;
  uint64_t numRequests = 0, bytes = 0;
  int failure = kSuccess;

  ~Comm() {
    if (socket >= 0)
      close(socket);
    magic = 0;
  }
};

Comm &commOf(void *given) {
  auto *comm = static_cast<Comm *>(given);
  if (!comm || comm->magic != Comm::kAlive)
    misused("a comm that is none");
  return *comm;
}

/// What listen() writes.
struct Handle {
  sockaddr_in address;
  Comm *connecting; // whoever connects keeps it here
};
static_assert(sizeof(Handle) <= kHandleBytes);

std::vector<sockaddr_in> addressesOfMachine() {
  std::vector<sockaddr_in> own, loopback;
  ifaddrs *all = nullptr;
  getifaddrs(&all);
  for (ifaddrs *one = all; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP))
      ((one->ifa_flags & IFF_LOOPBACK) ? loopback : own)
          .push_back(*reinterpret_cast<sockaddr_in *>(one->ifa_addr));
  freeifaddrs(all);
  return own.empty() ? loopback : own;
}

int newSocket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int one = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return made;
}

bool fails(const char *function) { return Mood::now().fails == function; }

bool isNotNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

/// As far as it gets.
void moveOne(Comm &comm, Request &request) {
  while (!request.isDone && comm.failure == kSuccess) {
    const bool isHead = request.numMoved < sizeof request.size;
    std::byte *place = isHead ? reinterpret_cast<std::byte *>(&request.size) + request.numMoved
                              : request.data + (request.numMoved - sizeof request.size);
    size_t wanted = isHead ? sizeof request.size - request.numMoved
                           : request.size + sizeof request.size - request.numMoved;
    if (comm.mood.isPartial)
      wanted = std::min<size_t>(wanted, 1 + comm.mood.random() % 20000);
    ssize_t moved = comm.kind == Comm::Sending
                        ? (comm.mood.swallows ? static_cast<ssize_t>(wanted)
                                              : send(comm.socket, place, wanted, MSG_NOSIGNAL))
                        : recv(comm.socket, place, wanted, 0);
    if (moved < 0 && isNotNow(errno))
      return;
    if (moved <= 0) {
      comm.failure = kRemoteError;
      return;
    }
    request.numMoved += static_cast<uint64_t>(moved);
    comm.bytes += static_cast<uint64_t>(moved);
    if (request.numMoved >= sizeof request.size && request.size > request.room) {
      comm.failure = kInvalidUsage;
      return;
    }
    request.isDone = request.numMoved == sizeof request.size + request.size;
    if (comm.mood.isPartial && comm.mood.happens(30))
      return;
  }
}

void moveAll(Comm &comm) {
  for (const auto &request : comm.requests) {
    if (!request->isDone)
      moveOne(comm, *request);
    if (!request->isDone)
      return;
  }
}

int post(void *given, bool isSend, void *data, size_t bytes, const void *registration,
         void **request) {
  Comm &comm = commOf(given);
  const Busy busy(&comm.isBusy), inContext(comm.context ? &comm.context->isBusy : nullptr);
  *request = nullptr;
  if (comm.kind != (isSend ? Comm::Sending : Comm::Receiving))
    misused("a comm of the other direction");
  const auto *known = static_cast<const Registration *>(registration);
  auto *begin = static_cast<std::byte *>(data);
  if (comm.registrations.count(known) == 0 || begin < known->data ||
      begin + bytes > known->data + known->bytes)
    misused("memory that is not registered");
  if (comm.requests.size() >= kMostRequests)
    misused("more requests than a comm may have");
  if (bytes > comm.mood.bytes && isSend)
    misused("more bytes than a request may have");
  if (++comm.numRequests > comm.mood.failsAfter)
    return kSystemError;
  if (comm.failure != kSuccess)
    return comm.failure;
  if (comm.mood.happens(comm.mood.null))
    return kSuccess;
  auto made = std::make_unique<Request>();
  made->comm = &comm;
  made->data = begin;
  made->room = bytes;
  made->size = isSend ? bytes : 0;
  *request = made.get();
  comm.requests.push_back(std::move(made));
  moveAll(comm);
  return kSuccess;
}

/// As a device would that was not told yet.
void writeForAWhile(std::vector<std::pair<std::byte *, size_t>> places) {
  std::thread([places = std::move(places)] {
    for (int round = 0; round < 10; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      for (const auto &[data, bytes] : places)
        std::memset(data, 0xdb, bytes);
    }
  }).detach();
}

} // namespace

int init(void **context, Logger logger) {
  theLogger = logger;
  if (fails("init"))
    return kSystemError;
  if (context)
    *context = new Context;
  SAY(kLogInfo, "is initialized, process %d", getpid());
  return kSuccess;
}

int finalize(void *context) {
  delete static_cast<Context *>(context);
  return kSuccess;
}

int devices(int *count) {
  *count = Mood::now().devices;
  return fails("devices") ? kInternalError : kSuccess;
}

int nameOf(int device, char **name, size_t *mostBytes) {
  static std::array<std::string, 16> names;
  std::string &own = names[static_cast<size_t>(device) % names.size()];
  if (own.empty())
    own = "sock" + std::to_string(device);
  *name = own.data();
  *mostBytes = Mood::now().bytes;
  return fails("getProperties") ? kSystemError : kSuccess;
}

int listen(void *context, int device, void *given, void **listenComm) {
  if (fails("listen"))
    return kSystemError;
  const std::vector<sockaddr_in> addresses = addressesOfMachine();
  if (addresses.empty())
    return kSystemError;
  auto comm = std::make_unique<Comm>();
  comm->context = static_cast<Context *>(context);
  comm->socket = newSocket();
  sockaddr_in address = addresses[static_cast<size_t>(device) % addresses.size()];
  address.sin_port = 0;
  socklen_t size = sizeof address;
  if (bind(comm->socket, reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      ::listen(comm->socket, 8) != 0 ||
      getsockname(comm->socket, reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return kSystemError;
  const Handle handle = {address, nullptr};
  std::memset(given, 0, kHandleBytes);
  std::memcpy(given, &handle, sizeof handle);
  *listenComm = comm.release();
  return kSuccess;
}

int connect(void *context, int device, void *given, void **sendComm) {
  *sendComm = nullptr;
  auto &handle = *static_cast<Handle *>(given);
  if (fails("connect"))
    return kRemoteError;
  if (!handle.connecting) {
    handle.connecting = new Comm;
    handle.connecting->context = static_cast<Context *>(context);
    handle.connecting->kind = Comm::Connecting;
    handle.connecting->socket = newSocket();
    if (::connect(handle.connecting->socket, reinterpret_cast<sockaddr *>(&handle.address),
                  sizeof handle.address) != 0 &&
        errno != EINPROGRESS)
      return kRemoteError;
  }
  Comm &comm = commOf(handle.connecting);
  sockaddr_in peer;
  socklen_t size = sizeof peer;
  int error = 0;
  socklen_t errorSize = sizeof error;
  getsockopt(comm.socket, SOL_SOCKET, SO_ERROR, &error, &errorSize);
  if (error != 0) {
    delete std::exchange(handle.connecting, nullptr);
    return kRemoteError;
  }
  if (comm.mood.happens(comm.mood.null) ||
      getpeername(comm.socket, reinterpret_cast<sockaddr *>(&peer), &size) != 0)
    return kSuccess;
  comm.kind = Comm::Sending;
  SAY(kLogInfo, "device %d is connected", device);
  *sendComm = std::exchange(handle.connecting, nullptr);
  return kSuccess;
}

int accept(void *listenComm, void **recvComm) {
  Comm &listening = commOf(listenComm);
  const Busy busy(&listening.isBusy);
  *recvComm = nullptr;
  if (fails("accept"))
    return kSystemError;
  if (listening.mood.happens(listening.mood.null))
    return kSuccess;
  const int accepted = accept4(listening.socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted < 0)
    return isNotNow(errno) ? kSuccess : kSystemError;
  auto *comm = new Comm;
  comm->context = listening.context;
  comm->socket = accepted;
  comm->kind = Comm::Receiving;
  *recvComm = comm;
  return kSuccess;
}

int regMr(void *given, void *data, size_t bytes, int type, void **registration) {
  Comm &comm = commOf(given);
  const Busy busy(&comm.isBusy);
  if (fails("regMr") || type != kPointerHost)
    return kSystemError;
  auto *made = new Registration{static_cast<std::byte *>(data), bytes};
  comm.registrations.insert(made);
  *registration = made;
  return kSuccess;
}

int deregMr(void *given, void *registration) {
  Comm &comm = commOf(given);
  const Busy busy(&comm.isBusy);
  if (comm.registrations.erase(static_cast<Registration *>(registration)) == 0)
    misused("what is deregistered was not registered");
  delete static_cast<Registration *>(registration);
  return kSuccess;
}

int isend(void *comm, void *data, size_t bytes, void *registration, void **request) {
  return post(comm, true, data, bytes, registration, request);
}

int irecv(void *comm, void *data, size_t bytes, void *registration, void **request) {
  return post(comm, false, data, bytes, registration, request);
}

int test(void *given, int *isDone, int *bytes) {
  auto &request = *static_cast<Request *>(given);
  Comm &comm = commOf(request.comm);
  const Busy busy(&comm.isBusy), inContext(comm.context ? &comm.context->isBusy : nullptr);
  const auto place =
      std::ranges::find(comm.requests, &request, [](const auto &it) { return it.get(); });
  if (place == comm.requests.end())
    misused("a request that is none");
  moveAll(comm);
  *isDone = request.isDone && !comm.mood.happens(comm.mood.late);
  if (!*isDone)
    return request.isDone ? int{kSuccess} : comm.failure;
  *bytes = static_cast<int>(request.size);
  comm.requests.erase(place);
  return kSuccess;
}

int closeComm(void *given) {
  std::unique_ptr<Comm> comm(&commOf(given));
  const Busy busy(&comm->isBusy), inContext(comm->context ? &comm->context->isBusy : nullptr);
  if (comm->kind == Comm::Sending)
    SAY(kLogInfo, "has sent %llu bytes", static_cast<unsigned long long>(comm->bytes));
  std::vector<std::pair<std::byte *, size_t>> places;
  for (const auto &request : comm->requests)
    if (comm->kind == Comm::Receiving && !request->isDone)
      places.emplace_back(request->data, request->room);
  if (comm->mood.writesAfterClose && !places.empty())
    writeForAWhile(std::move(places));
  return kSuccess;
}

} // namespace occl::net::test_plugin
