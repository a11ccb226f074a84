// Ordered connectors: memory for messages that all calls of a communicator in streams share, one
// call after the other, whatever their kinds and counts. So a call needs no registration, and what
// a rank has of a shape is its own business.
//
// Calls are numbered on each rank in the order in which they are made. A rank begins call n when
// all have begun n + 1 - DeviceCollective::lead, and so have finished n - lead. Programs of LL and
// LL128 use block n % kMaxRing of each rank, as their lead is at most kMaxRing; those of Simple,
// whose lead is 1, all use the same one. So nobody uses a block for an earlier call any more. A
// block of the former has a part for words, one for lines of LL and one for lines of LL128, the
// other one words and messages, so whatever a program finds in one is older of the same kind: words
// only grow from call to call (Invocation::wordBase), and lines carry flags that no earlier call
// has had (flagBase), until they are cleared long before 32 bits of flags come again.
//
// What a rank says of a call lies in one of kTurns places of its record with the others: who
// says it of n + kTurns has seen that all have finished n. With it goes a signature. Each
// rank compares it with its own when it begins, and again while it waits: of two ranks that call
// different things the later one finds it. test/model/calls has the model.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/calls/ordered_geometry.h"
#include "runtime/cuda/calls/shape.h"
#include "runtime/net/crossing.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace occl::cuda {

class OrderedConnectors {
public:
  /// Those of calls in streams; others are those of lanes.
  static constexpr uint32_t kOfStreams = 0;

  /// Their memory: for messages and words in the arena, and for numbers on the device.
  struct Pieces {
    ArenaSpace::Piece messages, numbers;
  };
  /// Nothing: there is not enough now.
  static std::optional<Pieces> take(const ShapeContext &context, const OrderedGeometry &sizes);

  /// Takes memory and tells the others where. All ranks do it, with the same geometry and number
  /// for the first call. `number`: below kMostConnectors, of these connectors alone. It may be
  /// tried again after Again, when nothing is taken; and after Timeout and SystemError, when others
  /// may know the place and the device may be about to store there: it is kept in `unfinished`,
  /// null before the first try, with which the next one goes on. reserved: taken for them before.
  static StatusOr<std::unique_ptr<OrderedConnectors>>
  make(const ShapeContext &context, uint32_t number, const OrderedGeometry &sizes,
       uint64_t firstCall, std::unique_ptr<OrderedConnectors> &unfinished,
       const std::optional<Pieces> &reserved = {});

  const OrderedGeometry &geometry() const { return sizes; }
  /// All of it that says where memory lies and how it is divided, for a program of that protocol.
  void describe(DeviceCollective &device, plan::Protocol protocol) const;
  /// DeviceCollective::ordinals as the device has them now.
  StatusOr<std::vector<uint64_t>> ordinals() const;
  /// Whether all other ranks have begun that call, as the device knows it now.
  StatusOr<bool> haveOthersBegun(uint64_t number) const;
  /// A word of the device, the number of the first call at first: of resident daemons, see
  /// DeviceCollective::cleared and resident::CollectiveAddresses::done.
  uint64_t *clearedWord() const { return numbers + kOrderedOrdinals; }
  uint64_t *doneWord() const { return numbers + kOrderedOrdinals + 1; }

private:
  OrderedConnectors(const ShapeContext &context, uint32_t number, const OrderedGeometry &sizes)
      : context(context), sizes(sizes), slot(number) {}
  Status fill(uint64_t firstCall);
  Status publish(uint64_t firstCall) const;
  uint64_t offsetOf(const OrderedGeometry::Blocks &part, uint32_t rank) const;

  const ShapeContext context;
  const OrderedGeometry sizes;
  const uint32_t slot;         // of their records
  uint64_t *numbers = nullptr; // kOrderedOrdinals, and two more
  uint64_t blocks = 0;         // where they lie in the arena
  bool isFilled = false;       // from then on others may be told of it, and store there
};

/// A shape whose messages lie there. Immutable, but for what devices write.
class OrderedShape : public Shape {
public:
  /// For any connectors of that geometry: see in(). InvalidArgument if the plan does not suit
  /// devices or the connectors; Again, SystemError.
  static StatusOr<std::unique_ptr<OrderedShape>> make(const ShapeContext &context,
                                                      const OrderedGeometry &sizes,
                                                      const daemon::CollectiveSpec &spec,
                                                      Kernels kernels);
  /// Which of its messages cross between machines. isRemote: by rank. Errors as make().
  static StatusOr<std::shared_ptr<const net::Crossing>>
  crossingOf(const ShapeContext &context, const OrderedGeometry &sizes,
             const daemon::CollectiveSpec &spec, const std::vector<bool> &isRemote);
  /// As kernels have it with those connectors.
  DeviceCollective in(const OrderedConnectors &connectors) const {
    DeviceCollective with = device;
    connectors.describe(with, protocol);
    return with;
  }
  /// What of all ranks must be there before, if parts are apart.
  const std::vector<LaterPart> &needed() const { return parts; }
  /// No kernel uses it any more; its device is current.
  ~OrderedShape();

private:
  explicit OrderedShape(const ShapeContext &context) : Shape(context) {}
  void note(const OrderedGeometry::Blocks &blocks) {
    if (blocks.in && std::ranges::count(parts, *blocks.in) == 0)
      parts.push_back(*blocks.in);
  }

  plan::Protocol protocol = plan::Protocol::Simple; // as it is executed
  std::vector<LaterPart> parts;
};

} // namespace occl::cuda
