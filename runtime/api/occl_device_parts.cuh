// What occl_device.cuh is made of, and not for programs: what a partitioned request has in memory,
// laid out by the library, and what one thread does with it. The protocol:
// docs/decisions/gpu/partitioned.md.
#ifndef OCCL_DEVICE_PARTS_CUH
#define OCCL_DEVICE_PARTS_CUH

#include "occl_device_groups.cuh"
#include "occl_partitioned_device.h"

#include <cstdint>

namespace occl::device::detail {

/// How a sender divides its buffer, in bytes. A message is some partitions; it is sent in units, of
/// which one or more make a message; the last message's last ones may be empty.
struct Cut {
  uint64_t bytes, messageBytes, messages, perMessage, unitBytes, unitsOfMessage;

  OCCL_DEVICE_FUNCTION uint64_t units() const { return messages * unitsOfMessage; }
};

/// Where the other side is: written by the host into pinned memory once the request is matched, and
/// kept by the device in its own.
struct Peer {
  uint64_t isConnected; // last
  /// Of a send: where the receiver starts, its words of arrival, and its buffer.
  const uint64_t *epoch;
  uint64_t *arrived;
  char *buffer;
  /// Of a receive: the sender's word `peerStarted`, and how it divides.
  uint64_t *started;
  Cut cut;
  uint64_t isFreed; // by the other side, which starts no epoch any more; of the host's alone
};

/// The first misuse by a kernel: 0: none. Active: started while its last epoch has not ended.
enum class Misuse : uint64_t { None, NoPartition, Twice, NoEpoch, WrongSide, Active };
inline constexpr uint32_t kMisusePartitionBits = 32, kMisuseBlockBits = 28;

struct State;

/// The sends of a rank, in its device memory: who waits for anything sends what marks had to leave.
struct Sends {
  static constexpr uint64_t kMost = 1024;

  uint64_t deferred; // some mark may have left something
  uint64_t scanners; // inside storeDeferred()
  uint64_t number;   // of the entries in use, with gaps
  State *of[kMost];  // null: none
};

/// What a rank's kernels that wait say to the host, pinned, and hear of it.
struct HostSide {
  const uint32_t *abort;  // not 0 once everything is to end
  uint32_t *waitsFor;     // 1 + the rank that is waited for
  uint64_t *waitingSince; // by the device's clock: when that was said last
  uint32_t *hasGivenUp;   // in device memory: not 0 once everything is to end
};

/// What a request is.
enum class Side : uint64_t { Receive, Send, Collective };

/// A partition of a collective's output on this rank.
struct OutputPartition {
  uint64_t made;   // how often a thread block has made all of its own of it, in all epochs together
  uint64_t makers; // thread blocks that store to it
  /// In place: the partitions of the input that lie there.
  uint32_t ownBegin, ownEnd;
};

struct State {
  // Constant.
  Side side;
  /// Of the buffer; of a collective those of its input, which are marked.
  uint64_t partitions;
  uint64_t partitionBytes, peerRank;
  char *buffer;
  OutputPartition *outputs;       // of a collective
  uint64_t numOutputs, numBlocks; // likewise; the latter of its call on this rank
  uint64_t *marked;               // of a send or collective
  uint64_t *counted, *units;      // of a send; `counted` is null if a message is a partition
  Cut cut;                        // of a send
  const Peer *host;               // pinned; not of a collective
  HostSide watch;
  Sends *sends;
  // Of this rank.
  alignas(128) uint64_t epoch;
  uint64_t done, misuse;
  uint64_t finished; // thread blocks of a collective's calls, in all epochs together
  uint64_t connecting;
  Peer peer;
  // Of the receiver.
  alignas(128) uint64_t peerStarted;
};

/// What a function that waits has come to. Failed: the communicator has, or the other side has
/// freed its request.
enum class Wait : uint64_t { Arrived, NotYet, Failed };
inline constexpr auto kGoOn = static_cast<Wait>(3); // of these functions alone

/// A request, as one thread sees it in one epoch. To make it takes a microsecond; what it has
/// looked up it keeps.
class Part {
public:
  /// The epoch that has been started when this is called.
  OCCL_DEVICE_FUNCTION explicit Part(occlPartDevice_t handle)
      : Part(static_cast<State *>(handle.state)) {}
  OCCL_DEVICE_FUNCTION explicit Part(State *state)
      : s(state), e(loadWord(&state->epoch)),
        isSimple(state->side == Side::Send && state->cut.perMessage == 1 &&
                 state->cut.unitsOfMessage == 1) {}

  OCCL_DEVICE_FUNCTION uint64_t epoch() const { return e; }
  OCCL_DEVICE_FUNCTION uint64_t partitions() const { return s->partitions; }

  // --- for the functions below ---

  State *s;
  uint64_t e;
  /// A send each of whose partitions is a message and a unit.
  bool isSimple;
  /// Of the one thread of a group that looks.
  bool knowsCredit = false, isUnitAPartition = false;
  uint64_t *arrivals = nullptr;

  /// Whether it is known where the other side is. Any number of threads find out at a time.
  OCCL_DEVICE_FUNCTION bool isConnected() const {
    if (acquireWord(&s->peer.isConnected) != 0)
      return true;
    if (acquireWord(&s->host->isConnected) == 0)
      return false;
    if (exchangeIf(&s->connecting, 0, 1) != 0)
      return false; // another one is at it: the next look finds it
    const Peer &given = *s->host;
    s->peer.epoch = given.epoch;
    s->peer.arrived = given.arrived;
    s->peer.buffer = given.buffer;
    s->peer.started = given.started;
    s->peer.cut = given.cut;
    releaseWord(&s->peer.isConnected, 1);
    return true;
  }
  OCCL_DEVICE_FUNCTION void misused(Misuse what, uint64_t partition) const {
    constexpr uint64_t kMost = (uint64_t{1} << kMisusePartitionBits) - 1;
#ifdef __CUDACC__
    const uint64_t linear =
        blockIdx.x + gridDim.x * (blockIdx.y + uint64_t{gridDim.y} * blockIdx.z);
    const uint64_t block = linear & ((1u << kMisuseBlockBits) - 1);
#else
    const uint64_t block = 0;
#endif
    const uint64_t word = static_cast<uint64_t>(what) << (kMisusePartitionBits + kMisuseBlockBits) |
                          block << kMisusePartitionBits | (partition < kMost ? partition : kMost);
    exchangeIf(&s->misuse, 0, word);
  }
  /// Partitions that may be marked.
  OCCL_DEVICE_FUNCTION uint64_t numMarked() const {
    return s->side == Side::Receive ? 0 : s->partitions;
  }
  /// Partitions that arrive.
  OCCL_DEVICE_FUNCTION uint64_t numArriving() const {
    return s->side == Side::Receive ? s->partitions : s->numOutputs;
  }
  OCCL_DEVICE_FUNCTION void misusedArrival(uint64_t q) const {
    misused(numArriving() == 0 ? Misuse::WrongSide : Misuse::NoPartition, q);
  }
  /// One thread, behind the group's barrier. Whether the mark completes its message.
  OCCL_DEVICE_FUNCTION bool mark(uint64_t p) const {
    if (p >= numMarked()) {
      misused(numMarked() == 0 ? Misuse::WrongSide : Misuse::NoPartition, p);
      return false;
    }
    if (loadWord(&s->done) >= e) {
      misused(Misuse::NoEpoch, p);
      return false;
    }
    fenceDevice();
    if (raise(&s->marked[p], e) >= e) {
      misused(Misuse::Twice, p);
      return false;
    }
    if (s->side == Side::Collective)
      return false; // executors of the library's look for marks
    if (s->counted == nullptr)
      return true;
    const uint64_t m = p / s->cut.perMessage;
    const bool isLast = add(&s->counted[m], 1) + 1 == e * partitionsOf(m);
    fenceDevice(); // what the others of the message have stored is seen
    return isLast;
  }
  OCCL_DEVICE_FUNCTION uint64_t partitionsOf(uint64_t message) const {
    const uint64_t left = s->partitions - message * s->cut.perMessage;
    return left < s->cut.perMessage ? left : s->cut.perMessage;
  }
  /// What was stored before the marks of a complete message is seen.
  OCCL_DEVICE_FUNCTION bool isComplete(uint64_t message) const {
    return s->counted == nullptr ? acquireWord(&s->marked[message]) >= e
                                 : acquireWord(&s->counted[message]) >= e * partitionsOf(message);
  }
  /// Whether the receiver has started the epoch. asksPeer: also if its word has not come here, as
  /// it started before it knew of this side; that takes a round trip.
  OCCL_DEVICE_FUNCTION bool hasCredit(bool asksPeer) const {
    return isConnected() &&
           (acquireWord(&s->peerStarted) >= e || (asksPeer && acquireWord(s->peer.epoch) >= e));
  }
  /// One thread of a group that will store the partition, of a simple send: takes it before it is
  /// marked, so that nobody else stores it. False: it is to be marked first, as the receiver has
  /// not started; or somebody has taken or marked it.
  OCCL_DEVICE_FUNCTION bool takeUnmarked(uint64_t p) {
    if (!knowsCredit && hasCredit(false)) {
      arrivals = s->peer.arrived;
      knowsCredit = true;
    }
    if (!knowsCredit || p >= s->partitions)
      return false;
    const bool isOver = hasFailed();
    return exchangeIf(&s->units[p], 2 * (e - 1), 2 * e - 1) == 2 * (e - 1) && !isOver;
  }
  /// It is stored, behind the group's barrier, and marked only now.
  OCCL_DEVICE_FUNCTION void storedUnmarked(uint64_t p) const {
    fenceSystem();
    storeWord(&arrivals[p], e);
    if (raise(&s->marked[p], e) >= e)
      misused(Misuse::Twice, p);
    fenceDevice(); // with this the epoch may end
    storeWord(&s->units[p], 2 * e);
  }
  /// Bytes [begin, end) of the buffer.
  OCCL_DEVICE_FUNCTION void bytesOf(uint64_t unit, uint64_t &begin, uint64_t &end) const {
    const Cut &cut = s->cut;
    const uint64_t message = unit / cut.unitsOfMessage;
    const uint64_t first = message * cut.messageBytes;
    const uint64_t last =
        cut.bytes - first < cut.messageBytes ? cut.bytes : first + cut.messageBytes;
    begin = first + unit % cut.unitsOfMessage * cut.unitBytes;
    begin = begin < last ? begin : last;
    end = last - begin < cut.unitBytes ? last : begin + cut.unitBytes;
  }
  OCCL_DEVICE_FUNCTION bool isClaimable(uint64_t unit) const {
    return loadWord(&s->units[unit]) < 2 * e - 1;
  }
  OCCL_DEVICE_FUNCTION bool claim(uint64_t unit) const {
    const uint64_t before = loadWord(&s->units[unit]);
    return before < 2 * e - 1 && exchangeIf(&s->units[unit], before, 2 * e - 1) == before;
  }
  OCCL_DEVICE_FUNCTION bool isStored(uint64_t unit) const {
    return acquireWord(&s->units[unit]) >= 2 * e;
  }
  /// One thread, behind the group's barrier after the copy.
  OCCL_DEVICE_FUNCTION void stored(uint64_t unit) const {
    fenceSystem();
    storeWord(&s->peer.arrived[unit], e);
    storeWord(&s->units[unit], 2 * e);
  }
  /// Whether partition q of a collective's output has all that it will have in this epoch.
  OCCL_DEVICE_FUNCTION bool isMade(uint64_t q) const {
    const OutputPartition &output = s->outputs[q];
    if (acquireWord(&output.made) != e * output.makers)
      return false;
    for (uint32_t p = output.ownBegin; p < output.ownEnd; ++p)
      if (acquireWord(&s->marked[p]) < e)
        return false;
    return true;
  }
  /// Whether partition q is there, of a receive or a collective's output; one thread of a group.
  OCCL_DEVICE_FUNCTION bool hasCome(uint64_t q) {
    if (s->side == Side::Collective)
      return isMade(q);
    if (arrivals == nullptr) {
      if (!isConnected())
        return false;
      const Cut &cut = s->peer.cut;
      arrivals = s->peer.arrived;
      isUnitAPartition = s->partitionBytes != 0 && cut.messageBytes == s->partitionBytes &&
                         cut.unitsOfMessage == 1;
    }
    return isUnitAPartition ? acquireWord(&arrivals[q]) >= e : hasArrived(q);
  }
  /// The same if it is connected.
  OCCL_DEVICE_FUNCTION bool hasArrived(uint64_t q) const {
    const uint64_t begin = q * s->partitionBytes, end = begin + s->partitionBytes;
    if (begin == end)
      return true;
    const Cut &cut = s->peer.cut;
    uint64_t unit = unitAt(cut, begin);
    for (const uint64_t last = unitAt(cut, end - 1); unit <= last; ++unit)
      if (acquireWord(&s->peer.arrived[unit]) < e)
        return false;
    return true;
  }
  OCCL_DEVICE_FUNCTION static uint64_t unitAt(const Cut &cut, uint64_t byte) {
    const uint64_t message = byte / cut.messageBytes;
    return message * cut.unitsOfMessage + (byte - message * cut.messageBytes) / cut.unitBytes;
  }
  OCCL_DEVICE_FUNCTION bool hasFailed() const { return detail::look(s->watch.hasGivenUp) != 0; }
  /// Now and then, by who waits: tells the host of it, and asks whether the communicator has failed
  /// or the other side has freed its request; that takes a microsecond or two.
  OCCL_DEVICE_FUNCTION bool isOver(uint64_t time, bool isLong) const {
    if (detail::look(s->watch.abort) != 0) {
      say(s->watch.hasGivenUp, 1);
      return true;
    }
    if (s->side == Side::Collective) // whom its call waits for is said by who executes it
      return false;
    if (isLong) {
      storeWord(s->watch.waitingSince, time);
      say(s->watch.waitsFor, static_cast<uint32_t>(s->peerRank) + 1);
    }
    return acquireWord(&s->host->isFreed) != 0;
  }
};

/// How long a thread has waited, in nanoseconds.
class Patience {
public:
  OCCL_DEVICE_FUNCTION explicit Patience(uint64_t atMost) : begin(deviceClock()), atMost(atMost) {}

  /// After a look in vain.
  OCCL_DEVICE_FUNCTION Wait look(const Part &part) {
    const uint64_t time = deviceClock();
    if (part.hasFailed() || loadWord(&part.s->misuse) != 0)
      return Wait::Failed;
    if (time - begin >= next) {
      next = time - begin + kApart;
      if (part.isOver(time, time - begin >= kLong))
        return Wait::Failed;
    }
    return time - begin >= atMost ? Wait::NotYet : kGoOn;
  }

private:
  static constexpr uint64_t kApart = 4'000'000, kLong = 10'000'000;
  const uint64_t begin, atMost;
  uint64_t next = 1'000'000;
};

} // namespace occl::device::detail

#endif // OCCL_DEVICE_PARTS_CUH
