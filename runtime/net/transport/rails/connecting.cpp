#include "runtime/net/transport/rails/connecting.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <openssl/crypto.h>
#include <span>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utility>
namespace occl::net {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
/// Linux asks at once, after a second, and after three.
constexpr auto kAskedTwice = 1500ms;
constexpr size_t kMostGuests = 64;

/// A communicator needs descriptors for other things, too: a quarter of them is left.
bool leavesRoom(const Descriptor &socket) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         static_cast<rlim_t>(socket.get()) < limit.rlim_cur / 4 * 3;
}

/// `side`: 'I' of who connects, 'R' of who answers.
Hash proofOf(char side, const RailSecret &secret, uint32_t index) {
  struct {
    std::array<char, 8> what{};
    Hash token{};
    uint32_t first = 0, second = 0, index = 0, unused = 0;
  } text;
  text.what = {'r', 'a', 'i', 'l', side};
  text.token = secret.token;
  text.first = secret.first;
  text.second = secret.second;
  text.index = index;
  return authenticate(secret.key, std::as_bytes(std::span(&text, 1)));
}

bool isSame(const Hash &a, const Hash &b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// A few bytes on a new connection: the kernel takes them, or the connection is of no use.
template <class Record> bool say(const Descriptor &socket, const Record &record) {
  return send(socket.get(), &record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof record);
}

enum class Heard : uint8_t { Part, All, End };

Heard hear(const Descriptor &socket, std::span<std::byte> into, size_t &heard) {
  const ssize_t got = recv(socket.get(), into.data() + heard, into.size() - heard, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return Heard::Part;
  if (got <= 0)
    return Heard::End;
  heard += static_cast<size_t>(got);
  return heard == into.size() ? Heard::All : Heard::Part;
}

} // namespace

void RailCaller::call(uint32_t index, const Address &from, const Address &to) {
  if (auto socket = beginConnect(from, to); socket.ok() && leavesRoom(*socket))
    calls.push_back({index, std::move(*socket), Deadline(kAskedTwice)});
}

bool RailCaller::isUnanswered(uint32_t index) const {
  return std::ranges::any_of(calls, [&](const Call &call) {
    return call.index == index && !call.isIntroduced && call.patience.passed();
  });
}

bool RailCaller::advance() {
  calls.remove_if([this](Call &call) { return advance(call); });
  return calls.empty();
}

bool RailCaller::advance(Call &call) {
  if (!call.isIntroduced) {
    const auto connected = isConnected(call.socket);
    if (!connected.ok() || !*connected)
      return !connected.ok();
    RailHost::Hello hello;
    hello.index = call.index;
    hello.first = secret.first;
    hello.second = secret.second;
    hello.proof = proofOf('I', secret, call.index);
    if (!say(call.socket, hello))
      return true;
    call.isIntroduced = true;
  }
  const Heard heard = hear(call.socket, call.answer, call.heard);
  if (heard == Heard::All && isSame(call.answer, proofOf('R', secret, call.index)))
    sockets[call.index] = std::move(call.socket);
  return heard != Heard::Part;
}

StatusOr<RailHost> RailHost::listen(std::span<const Address> addresses) {
  const auto drawn = drawHash();
  if (!drawn.ok())
    return drawn.status();
  RailHost host(*drawn);
  for (const Address &address : addresses)
    if (host.portAt(address) == 0)
      host.listenAt(address);
  if (host.listeners.empty())
    return Status(StatusCode::SystemError, "cannot listen for further connections");
  return host;
}

void RailHost::listenAt(const Address &address) {
  if (address.isAny())
    return;
  Address anyPort = address;
  anyPort.port = 0;
  auto socket = listenOn(anyPort);
  if (!socket.ok() || !leavesRoom(*socket))
    return;
  const auto bound = addressOf(*socket);
  if (!bound.ok())
    return;
  listeners.push_back({std::move(*socket), address, {}});
  listeners.back().address.port = bound->port;
}

uint16_t RailHost::portAt(const Address &address) const {
  for (const Listener &listener : listeners)
    if (listener.address.host == address.host)
      return listener.address.port;
  return 0;
}

void RailHost::admit(Listener &listener) {
  while (listener.guests.size() < kMostGuests) {
    auto socket = acceptNow(listener.socket);
    if (!socket.ok() || !socket->valid()) // without descriptors this rail is not used
      return;
    listener.guests.push_back({std::move(*socket), Deadline(kPatience)});
  }
}

bool RailHost::advance(const RailSecret &secret, const std::array<bool, kMostRails> &expected) {
  for (Listener &listener : listeners) {
    admit(listener);
    listener.guests.remove_if([&](Guest &guest) { return advance(guest, secret, expected); });
  }
  for (size_t i = 0; i < kMostRails; ++i)
    if (expected[i] && !sockets[i].valid())
      return false;
  return true;
}

/// Whether it is no guest any more.
bool RailHost::advance(Guest &guest, const RailSecret &secret,
                       const std::array<bool, kMostRails> &expected) {
  const Heard heard = hear(guest.socket, guest.hello, guest.heard);
  if (heard != Heard::All)
    return heard == Heard::End || guest.until.passed();
  Hello hello;
  std::memcpy(&hello, guest.hello.data(), sizeof hello);
  if (hello.magic != Hello().magic || hello.index >= kMostRails || !expected[hello.index] ||
      sockets[hello.index].valid() || hello.first != secret.first ||
      hello.second != secret.second || !isSame(hello.proof, proofOf('I', secret, hello.index)))
    return true;
  if (say(guest.socket, proofOf('R', secret, hello.index)))
    sockets[hello.index] = std::move(guest.socket);
  return true;
}

} // namespace occl::net
