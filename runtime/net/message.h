// What ranks of different islands tell each other beside data: docs/decisions/hosts/net.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/records/announce.h"
#include "runtime/net/transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace occl::net {

/// As it is on the wire, little endian; the text of a failure follows, the waits, the division, or
/// what a transport::ShrinkRecord says.
struct Message {
  enum Kind : uint32_t {
    Publish = 1,  // the sender has submitted an invocation
    Finished = 2, // it neither reads nor writes memory of invocations below `ordinal` any more
    Failed = 3,   // its communicator has failed, with `code`
    Left = 4,     // it has destroyed its communicator
    Barrier = 5,  // it has entered one more
    Ask = 6,      // what does the receiver wait for? A question with the number `ordinal`
    Waits = 7,    // this is what it waits for, in answer to that number
    Divide = 8,   // what its SplitRecord says
    Shrink = 9,   // what its ShrinkRecord says
  };

  uint32_t kind = 0;
  uint32_t code = 0;
  uint64_t id = 0, ordinal = 0;
  uint64_t arenaOffset = 0;
  /// Of the block, to be zero before the invocation is seen.
  uint64_t controlBytes = 0, headBytes = 0;
  uint64_t planHash = 0, count = 0;
  uint32_t dataType = 0, op = 0, collective = 0, root = 0;
  int32_t priority = 0;
  uint32_t turn = 0;

  transport::CollectiveTraits traits() const {
    return {planHash, count, dataType, op, collective, root};
  }
};
static_assert(sizeof(Message) == 88);

struct MessageWithText {
  Message message;
  std::string text;
};

/// A transport::WaitEdge on the wire, little endian.
struct WaitRecord {
  uint64_t collective = 0, ordinal = 0;
  uint32_t block = 0, instruction = 0, reason = 0, peer = 0, thing = 0, unused = 0;
  uint64_t nanoseconds = 0; // for how long; 0: unknown
};
static_assert(sizeof(WaitRecord) == 48);
/// So many in a message.
inline constexpr size_t kMostWaits = (kMaxMessage - sizeof(Message)) / sizeof(WaitRecord);

/// A transport::SplitRecord on the wire, little endian.
struct DivisionRecord {
  uint64_t published = 0, done = 0, abandoned = 0, abandonedFrom = 0;
  int32_t colour = 0, key = 0;
  uint64_t segmentBytes = 0, offer = 0;
};
static_assert(sizeof(DivisionRecord) == 56);

std::vector<std::byte> encode(const Message &message, std::string_view text = {});
/// Nothing if it is none.
std::optional<MessageWithText> decode(std::span<const std::byte> bytes);

} // namespace occl::net
