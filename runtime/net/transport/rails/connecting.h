// The connections that a pair makes beside the one by which it has met: who connects proves to know
// the key, and so does who is connected to.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/rendezvous/handshake.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/rail_share.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>

namespace occl::net {

/// What both know of the connections of one attempt.
struct RailSecret {
  Hash key{}, token{};            // the token is new
  uint32_t first = 0, second = 0; // ranks
};

/// By index: connections that both have proved; others are not valid.
using RailSockets = std::array<Descriptor, kMostRails>;

/// Of the rank that connects. No function waits.
class RailCaller {
public:
  explicit RailCaller(const RailSecret &secret) : secret(secret) {}

  void call(uint32_t index, const Address &from, const Address &to);
  /// True: nothing is under way any more.
  bool advance();
  /// Whether nothing at all has come to a call that is under way for at least 1.5 s: not even from
  /// the kernel there, which answers whatever its processes do, and has been asked twice by then.
  bool isUnanswered(uint32_t index) const;

  RailSockets sockets;

private:
  struct Call {
    uint32_t index = 0;
    Descriptor socket;
    Deadline patience;
    bool isIntroduced = false;
    Hash answer{};
    size_t heard = 0;
  };
  /// Whether it is over.
  bool advance(Call &call);

  const RailSecret secret;
  std::list<Call> calls;
};

/// Of the rank that listens.
class RailHost {
public:
  /// At any port of each of these addresses of this machine, and of no other. SystemError.
  static StatusOr<RailHost> listen(std::span<const Address> addresses);
  RailHost(RailHost &&) = default;

  /// Where it listens at that address, whatever its port; 0: it does not.
  uint16_t portAt(const Address &address) const;
  const Hash &token() const { return drawn; }
  /// True: all of these are there. `expected`: by index.
  bool advance(const RailSecret &secret, const std::array<bool, kMostRails> &expected);

  RailSockets sockets;

private:
  struct Hello {
    uint64_t magic = 0x31'4c'49'41'52'43'43'4full; // "OCCRAIL1"
    uint32_t index = 0, first = 0, second = 0, unused = 0;
    Hash proof{};
  };
  friend class RailCaller;
  struct Guest {
    Descriptor socket;
    Deadline until;
    std::array<std::byte, sizeof(Hello)> hello{};
    size_t heard = 0;
  };

  /// At one address, with guests of its own: whoever has the other ones' places is not in their
  /// way.
  struct Listener {
    Descriptor socket;
    Address address;
    std::list<Guest> guests;
  };

  explicit RailHost(const Hash &drawn) : drawn(drawn) {}
  void listenAt(const Address &address);
  static void admit(Listener &listener);
  bool advance(Guest &guest, const RailSecret &secret,
               const std::array<bool, kMostRails> &expected);

  std::list<Listener> listeners;
  Hash drawn{};
};

} // namespace occl::net
