// How two ranks come to a transport that works between them: each kind of transport is one of
// these, and is tried out before it is chosen. runtime/net/choose/choose_transport.h drives them.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/transport.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace occl::net {

/// What a rank says of a transport to all peers, and of an attempt to one. The transport knows what
/// is in there, and checks it: it comes from another process.
using OfferBytes = std::array<std::byte, 1024>;
using AttemptBytes = std::array<std::byte, 256>;

template <class Bytes, class Record> Bytes bytesOf(const Record &record) {
  static_assert(sizeof(Record) <= sizeof(Bytes) && std::is_trivially_copyable_v<Record>);
  Bytes bytes{};
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}
template <class Record, class Bytes> Record recordOf(const Bytes &bytes) {
  static_assert(sizeof(Record) <= sizeof(Bytes) && std::is_trivially_copyable_v<Record>);
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

/// Two ranks, as one of them sees them.
struct RankPair {
  uint32_t rank = 0, peer = 0;
  /// Of both among the ranks of their machine: whose turn is to use which port or device.
  uint32_t ownTurn = 0, peerTurn = 0;
  Regions regions; // that the peer may write to
  std::chrono::milliseconds silence{};
  int socket = -1; // by which they have met, for its addresses
  /// Known to both, and to no stranger.
  std::array<std::byte, 32> key{};

  bool isFirst() const { return rank < peer; }
};

/// One transport between two ranks, while they try it. Both call these in this order, and each
/// knows that the other has done a step before it does the next. One thread. No function waits.
class Attempt {
public:
  virtual ~Attempt() = default;

  /// What the peer has to know.
  virtual AttemptBytes address() const = 0;
  virtual Status connect(const AttemptBytes &ofPeer) = 0;
  /// To be called until it is true, or an error: something has come from the peer.
  virtual StatusOr<bool> tryOut() = 0;
  /// Once it was true, to be called until the peer has said how it went there. What the peer sends
  /// from then on is its endpoint's, and stays where it is.
  virtual void driveOn() {}
  /// Whether it does without what tryOut() still waits for, if that takes long.
  virtual bool worksAlready() const { return false; }
  /// Whether nothing more comes of tryOut() here once it is over there.
  virtual bool endsWithPeer() const { return false; }
  /// What has been tried out here, for the peer, and there.
  virtual AttemptBytes tried() const { return {}; }
  virtual void settle(const AttemptBytes &) {}
  /// "mlx5_0 port 1"; empty if there is nothing to say.
  virtual std::string text() const = 0;
  /// `socket`: connected to the peer, which says nothing more there about transports.
  virtual std::unique_ptr<Endpoint> finish(bootstrap::Descriptor socket) = 0;
};

/// A kind of transport, for all peers of a rank that connect at a time.
class TransportKind {
public:
  virtual ~TransportKind() = default;

  /// For people: "RDMA".
  virtual std::string_view title() const = 0;
  /// Why it cannot be used here, if it cannot.
  virtual StatusOr<OfferBytes> offer() = 0;
  /// Only after an offer.
  virtual StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &pair, const OfferBytes &mine,
                                                     const OfferBytes &theirs) = 0;
};

} // namespace occl::net
