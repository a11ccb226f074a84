#include "runtime/net/transport/rails/pairs.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>

namespace occl::net {
namespace {

std::span<const OfferedAddress> addressesOf(const TcpOffer &offer) {
  return std::span(offer.addresses).first(offer.count);
}

uint8_t indexOf(const TcpOffer &offer, const Address &address) {
  const auto all = addressesOf(offer);
  const auto found = std::ranges::find(all, address.host, &OfferedAddress::host);
  return found == all.end() ? RailPair::kUnknown : static_cast<uint8_t>(found - all.begin());
}

/// Mbit/s that the two threads of a rank fill about: more links than that takes cost time.
constexpr uint64_t kEnoughSpeed = 25'000;

/// One rank, while its interfaces are given away.
struct Side {
  const TcpOffer &offer;
  const uint8_t met; // index of the address by which the ranks have met
  std::set<std::string> taken = {};
  uint64_t speed = 0; // of these

  /// Whether data may go by the connection by which they have met.
  bool allowsMet() const { return offer.isRestricted == 0 || met != RailPair::kUnknown; }
  /// Unless it is named, one as fast as that of the address by which they have met, or, where this
  /// is left out, as the first one; of which more are needed, as far as the system knows.
  bool allows(const OfferedAddress &address) const {
    if (taken.contains(address.name()))
      return false;
    if (offer.isNamed != 0)
      return true;
    if (met == RailPair::kUnknown)
      return offer.isRestricted != 0 && taken.empty();
    return address.speed != 0 && offer.addresses[met].speed == address.speed &&
           speed + address.speed <= kEnoughSpeed;
  }
  void take(uint8_t index) {
    if (index == RailPair::kUnknown)
      return;
    taken.insert(offer.addresses[index].name());
    speed += offer.addresses[index].speed;
  }
};
/// Whether some pair is of this subnet: then the system decides which of them sends.
bool isTaken(const OfferedAddress &address, const RailPairs &pairs, const TcpOffer &first) {
  return std::ranges::any_of(std::span(pairs.pairs).first(pairs.count), [&](const RailPair &pair) {
    return pair.ofFirst != RailPair::kUnknown && first.addresses[pair.ofFirst].reaches(address);
  });
}

void addPairs(RailPairs &pairs, Side &first, Side &second, bool areIpv4) {
  for (uint32_t i = 0; i < first.offer.count; ++i)
    for (uint32_t j = 0; j < second.offer.count && pairs.count < kMostInterfaces; ++j) {
      const OfferedAddress &a = first.offer.addresses[i], &b = second.offer.addresses[j];
      if (a.isIpv4() != areIpv4 || !a.reaches(b) || !first.allows(a) || !second.allows(b) ||
          isTaken(a, pairs, first.offer))
        continue;
      pairs.add({static_cast<uint8_t>(i), static_cast<uint8_t>(j), 0});
      first.take(i);
      second.take(j);
    }
}

} // namespace

RailPairs pairRails(const TcpOffer &first, const TcpOffer &second, const Address &ofFirst,
                    const Address &ofSecond) {
  Side a{first, indexOf(first, ofFirst)}, b{second, indexOf(second, ofSecond)};
  const RailPair met = {a.met, b.met, 1};
  RailPairs interfaces;
  if (a.allowsMet() && b.allowsMet()) {
    interfaces.add(met);
    a.take(a.met);
    b.take(b.met);
  }
  for (const bool areIpv4 : {ofFirst.isIpv4(), !ofFirst.isIpv4()})
    addPairs(interfaces, a, b, areIpv4);
  if (interfaces.count == 0)
    interfaces.add(met);
  RailPairs pairs;
  const uint32_t each =
      std::clamp<uint32_t>(std::min(first.connections, second.connections), 1, kMostRails);
  for (uint32_t c = 0; c < each; ++c)
    for (uint32_t i = 0; i < interfaces.count && pairs.count < kMostRails; ++i)
      pairs.add(interfaces.pairs[i]);
  return pairs;
}

bool isOffer(const TcpOffer &offer) { return offer.count <= TcpOffer::kMost; }

bool fits(const RailPairs &pairs, const TcpOffer &first, const TcpOffer &second) {
  const auto isIndex = [](uint8_t index, const TcpOffer &offer, bool mayBeUnknown) {
    return index < offer.count || (mayBeUnknown && index == RailPair::kUnknown);
  };
  if (pairs.count < 1 || pairs.count > kMostRails)
    return false;
  return std::ranges::all_of(std::span(pairs.pairs).first(pairs.count), [&](const RailPair &pair) {
    return pair.isAsMet <= 1 && isIndex(pair.ofFirst, first, pair.isAsMet != 0) &&
           isIndex(pair.ofSecond, second, pair.isAsMet != 0);
  });
}

} // namespace occl::net
