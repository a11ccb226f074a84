// Brings the requests of a rank together with those of its peers: the k-th send of a pair and tag
// with the k-th receive. Ranks tell each other of theirs by notices (notice.h). Also hands out the
// memory of requests' words, as it is in use until the peer has let go of it.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/memory/arena.h"
#include "runtime/partitioned/notice.h"
#include "runtime/partitioned/shape.h"
#include "runtime/partitioned/words.h"
#include "runtime/sync/doorbell.h"
#include "runtime/sync/light_mutex.h"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace occl::partitioned {

struct Party;

/// Where a request on a device has its words, and, if it receives, its buffer: 1 + offsets in its
/// rank's arena. 0: it is on a host.
struct DevicePlace {
  uint64_t words = 0, buffer = 0;
};

/// Notices that are to be written, in nodes that are made early, so that nothing that has begun
/// needs memory to be told.
using Notices = std::list<Notice>;

/// The peer's request, as it has told of it. Constant once it is matched, but for isFreed.
struct Counterpart {
  uint64_t serial = 0; // the peer's
  bool isSend = false;
  uint64_t tag = 0;
  Shape shape;
  Header *header = nullptr; // the peer's words, to be read only; null if they are no more
  MessageWords messages;    // of a send
  interpreter::Reference reference = 0;
  /// On devices; offsets in the peer's arena.
  DevicePlace onDevice{};
  /// Of a receive there, once it is bound: 1 + the offset of its words of arrival.
  Atomic<uint64_t> arrivals{0};
  /// It starts no epoch any more; its words stay as they are.
  Atomic<bool> isFreed{false};

  // Under the matching's lock.
  uint64_t number = 0;    // of its tag, while it waits there
  bool isWaiting = false; // for a request of this rank
  Party *party = nullptr;
  Notices letGo = Notices(1); // that this rank does not access it any more
};

/// What is known of a request of this rank with a peer.
struct Party {
  const bool isSend;
  const uint32_t peer;
  const uint64_t tag;
  const Shape shape;
  const interpreter::Reference reference; // of a send: to the buffer
  /// Of a request on a device, which has no words here.
  DevicePlace onDevice{};
  /// Its memory there: kept until the peer has let go of it.
  std::vector<std::shared_ptr<const void>> kept{};
  /// Of a receive there: the node of its notice that it is bound.
  Notices bound{};

  // Set by Matching::add.
  uint64_t serial = 0;
  uint64_t number = 0; // of its tag, while it waits there
  Header *header = nullptr;
  uint64_t block = 0, blockBytes = 0; // where it lies
  bool isLetGo = false;               // under the matching's lock: by the peer
  /// The peer can read that it was made.
  Atomic<bool> isTold{false};
  /// Null until it is matched; then it does not change.
  Atomic<const Counterpart *> counterpart{nullptr};

  /// "partitioned send from rank 0 to rank 1, tag 5".
  std::string describe(uint32_t rank) const;
};

/// Of a communicator's rank. Thread safety: any.
class Matching {
public:
  /// bell: of the executors of this rank. Both outlive it.
  Matching(daemon::Fabric &fabric, Doorbell &bell);
  ~Matching();

  /// Gives it words, and its number, and tells the peer; it may be matched with this. Again: there
  /// is no memory for its words. As look(). If it throws there is no memory, and nobody has heard
  /// of it.
  Status add(Party &party);
  /// Nothing accesses the request any more, here.
  void remove(Party &party) noexcept;
  /// Once, of a receive on a device that is matched: tells its sender of its words of arrival, at
  /// this offset. The party has the node.
  void bind(Party &party, uint64_t arrivals) noexcept;
  /// Takes the notices that the peer has written, and writes those that wait for room. An error is
  /// why the communicator has to fail: a mismatch, or notices that are damaged.
  Status look(uint32_t peer);
  /// The same for all peers with which there are requests, or were.
  Status lookAtAll();

  Doorbell &bellOf(uint32_t peer) const;
  /// Tags with requests that are not matched, in either direction, of all peers.
  size_t numOpenTags();

private:
  /// The requests of a tag in one direction. The next one here is for the next one there when as
  /// many were made here as there and none waits for another: then the tag is as a new one, and
  /// there is no entry.
  struct Tag {
    uint64_t nextMine = 0, nextTheirs = 0;
    std::map<uint64_t, Party *> mine;         // not matched, by number
    std::map<uint64_t, Counterpart *> theirs; // likewise

    bool isAsNew() const { return mine.empty() && theirs.empty() && nextMine == nextTheirs; }
  };
  using Tags = std::map<std::pair<bool, uint64_t>, Tag>; // by whether this rank sends, and tag
  struct Channel;

  Channel &channelTo(uint32_t peer);
  Status allocate(Party &party);
  void release(uint64_t block, uint64_t bytes);
  Tags::iterator enter(Channel &channel, Party &party);
  Status lookLocked(Channel &channel);
  void write(Channel &channel, Notices &one);
  void writeWaiting(Channel &channel);
  Status take(Channel &channel, const Notice &notice);
  Status takeMade(Channel &channel, const Notice &notice);
  Status takeFreed(Channel &channel, uint64_t serial);
  void takeLetGo(Channel &channel, uint64_t serial);
  void takeBound(Channel &channel, const Notice &notice);
  void letGo(Channel &channel, Counterpart &counterpart);
  static void dropIfAsNew(Channel &channel, Tags::iterator tag);
  Status match(Channel &channel, Party &party, Counterpart &counterpart);
  Status mismatch(const Party &party, uint32_t peer, const Counterpart &theirs) const;
  Status damaged(uint32_t peer) const;

  daemon::Fabric &fabric;
  Doorbell &bell;
  LightMutex mutex;                               // guards all below
  std::vector<std::unique_ptr<Channel>> channels; // by peer, from the first request on
  transport::Arena memory;                        // offsets from the begin of the words
  uint64_t nextSerial = 1;
};

} // namespace occl::partitioned
