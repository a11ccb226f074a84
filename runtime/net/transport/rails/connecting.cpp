#include "runtime/net/transport/rails/connecting.h"

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
    calls.push_back({index, std::move(*socket)});
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

StatusOr<RailHost> RailHost::listen() {
  auto listener = listenOnPort(0);
  if (!listener.ok())
    return listener.status();
  if (!leavesRoom(*listener))
    return Status(StatusCode::SystemError, "too few descriptors are left");
  const auto address = addressOf(*listener);
  if (!address.ok())
    return address.status();
  auto drawn = drawHash();
  if (!drawn.ok())
    return drawn.status();
  return RailHost(std::move(*listener), address->port, *drawn);
}

bool RailHost::advance(const RailSecret &secret, const std::array<bool, kMostRails> &expected) {
  while (guests.size() < kMostGuests) {
    auto socket = acceptNow(listener);
    if (!socket.ok() || !socket->valid()) // without descriptors this rail is not used
      break;
    guests.push_back({std::move(*socket), Deadline(kPatience)});
  }
  guests.remove_if([&](Guest &guest) { return advance(guest, secret, expected); });
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
