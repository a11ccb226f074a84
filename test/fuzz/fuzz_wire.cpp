// Any bytes from another machine: as frames and messages of a rank that has proved who it is, or as
// the beginning of a connection of somebody who has not. Nothing is written outside of what is the
// peer's, nothing is waited for, and what is wrong ends the connection.
//
// The first byte says which. Frames are pieces of the input: a byte says what kind of frame, the
// next how long it is; its number is right but for raw ones.
#include "runtime/net/message.h"
#include "runtime/net/rendezvous/handshake.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/testing/side_of_two.h"
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/tcp.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sys/socket.h>
#include <utility>
#include <vector>

using namespace occl::net;
using occl::Deadline;

namespace {

using Bytes = std::span<const uint8_t>;

uint8_t takeByte(Bytes &input) {
  const uint8_t byte = input.empty() ? 0 : input[0];
  input = input.subspan(std::min<size_t>(1, input.size()));
  return byte;
}

/// As much of it as there is, the rest zero.
template <class T> T takeAs(Bytes &input) {
  T value{};
  const size_t bytes = std::min(sizeof value, input.size());
  std::memcpy(static_cast<void *>(&value), input.data(), bytes);
  input = input.subspan(bytes);
  return value;
}

Bytes takePiece(Bytes &input) {
  const Bytes piece = input.subspan(0, std::min<size_t>(takeByte(input), input.size()));
  input = input.subspan(piece.size());
  return piece;
}

void append(std::vector<std::byte> &stream, const void *data, size_t bytes) {
  const auto *begin = static_cast<const std::byte *>(data);
  stream.insert(stream.end(), begin, begin + bytes);
}

std::vector<std::byte> framesOf(Bytes input, const occl::net::testing::SideOfTwo &side) {
  std::vector<std::byte> stream;
  uint64_t number = 0;
  while (!input.empty()) {
    const uint8_t kind = takeByte(input) % 4;
    if (kind == 3) {
      const Bytes raw = takePiece(input);
      append(stream, raw.data(), raw.size());
      continue;
    }
    FrameHeader header = kind == 0 ? takeAs<FrameHeader>(input) : FrameHeader();
    std::vector<std::byte> bytes;
    if (kind == 1) {
      bytes = encode(takeAs<Message>(input));
    } else if (kind == 2) {
      Message message = side.published(128 * takeByte(input));
      message.ordinal = takeByte(input);
      bytes = encode(message);
    }
    const Bytes more = takePiece(input);
    append(bytes, more.data(), more.size());
    if (kind != 0)
      header = headerOfMessage(bytes.size(), number);
    header.number = number++;
    append(stream, &header, sizeof header);
    append(stream, bytes.data(), bytes.size());
  }
  return stream;
}

void sendFrames(Bytes input) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    std::abort();
  const Descriptor peer(sockets[1]);
  occl::net::testing::SideOfTwo side([&](const Regions &regions) {
    return makeTcpEndpoint(Descriptor(sockets[0]), regions, std::chrono::seconds(30));
  });
  const std::vector<std::byte> stream = framesOf(input, side);
  for (size_t sent = 0; sent < stream.size();) {
    const ssize_t now =
        send(peer.get(), stream.data() + sent, stream.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now <= 0 && !side.network->isUp(1))
      return;
    sent += now > 0 ? static_cast<size_t>(now) : 0;
    while (side.network->receive(0))
      ;
    side.network->send();
  }
}

void connectWith(Bytes input) {
  static const Descriptor listener = std::move(*listenOn(loopback(0)));
  static const auto address = *addressOf(listener);
  Reception reception(listener, Hash{});
  auto guest = connectTo(std::span(&address, 1), Deadline(std::chrono::seconds(1)));
  if (!guest.ok())
    return;
  do {
    const Bytes piece = takePiece(input);
    if (!piece.empty() && send(guest->get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0)
      return;
    const auto accepted =
        reception.next([](const Claim &) { return ""; }, Deadline(std::chrono::milliseconds(0)));
    if (accepted.ok())
      std::abort(); // without the key
  } while (!input.empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Bytes input(data, size);
  if (takeByte(input) % 4 == 0)
    connectWith(input);
  else
    sendFrames(input);
  return 0;
}
