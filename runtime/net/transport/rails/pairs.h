// Which addresses of two machines make rails.
#pragma once

#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/rail_share.h"
#include "runtime/net/transport/rails/offer.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace occl::net {

/// One connection. Fixed layout: it is sent as it is.
struct RailPair {
  static constexpr uint8_t kUnknown = 0xff;

  /// Of both offers.
  uint8_t ofFirst = kUnknown, ofSecond = kUnknown;
  /// Between the addresses by which the ranks have met. The first such connection is that one.
  uint8_t isAsMet = 0;
};

struct RailPairs {
  uint32_t count = 0;
  std::array<RailPair, kMostRails> pairs{};

  void add(const RailPair &pair) { pairs[count++] = pair; }
};

/// Interfaces of a pair of machines that are used at a time.
inline constexpr size_t kMostInterfaces = 4;

/// All connections of two ranks, who have met between these addresses; at least one. The first of
/// each pair of interfaces come first. Both must be offers: see isOffer().
RailPairs pairRails(const TcpOffer &first, const TcpOffer &second, const Address &ofFirst,
                    const Address &ofSecond);

/// Offers and pairs come from other processes.
bool isOffer(const TcpOffer &offer);
bool fits(const RailPairs &pairs, const TcpOffer &first, const TcpOffer &second);

} // namespace occl::net
