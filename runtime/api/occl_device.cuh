// Partitioned sends and receives inside kernels (occl_partitioned_device.h). A header alone:
// nothing is linked. C++17, CUDA 12 or newer, compute capability 8.0 or newer.
//
//   __global__ void produce(occlPartDevice_t handle, float *field) {
//     occl::device::Part part(handle);                       // once a thread block
//     compute(field, blockIdx.x);                            // all its threads
//     ready(occl::device::Block(), part, blockIdx.x);        // the partition travels
//   }
//
// A group is what calls together: Thread, Warp (all 32 lanes) or Block (all threads, of one
// dimension or more). All of the group call with the same arguments. What the threads of the group
// have stored before ready() is what arrives; whoever is told that a partition has arrived may read
// it with plain loads (not through the read-only cache: no __ldg, no `const __restrict__`).
//
// Registers: up to 140 a thread, so kernels of more than 384 threads that call these functions say
// how many they have (__launch_bounds__); otherwise their launch may fail.
//
// Compiled without CUDA the same functions are host code for groups of one thread, which tests use.
#ifndef OCCL_DEVICE_CUH
#define OCCL_DEVICE_CUH

#include "occl_partitioned_device.h"

#include <cstdint>
#ifndef __CUDACC__
#include <chrono>
#include <cstring>
#endif

#ifdef __CUDACC__
#define OCCL_DEVICE_FUNCTION __device__ inline
#else
#define OCCL_DEVICE_FUNCTION inline
#endif

namespace occl::device {
/// What programs use of it is named at the end.
namespace detail {

// --- words: 64 bits, between devices and with the host ---

#ifdef __CUDACC__
/// What was stored before the value was released is there to be read.
OCCL_DEVICE_FUNCTION uint64_t acquire(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
OCCL_DEVICE_FUNCTION uint64_t load(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// After all that this thread has stored, or seen, or met at a barrier.
OCCL_DEVICE_FUNCTION void release(uint64_t *word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// Of one device: what this thread has stored, or seen, comes before what it does next.
OCCL_DEVICE_FUNCTION void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
/// The same, for the system; and a store behind it.
OCCL_DEVICE_FUNCTION void fenceForAll() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
OCCL_DEVICE_FUNCTION void storeBehind(uint64_t *word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// In one order with all others of the system.
OCCL_DEVICE_FUNCTION void fenceAll() { asm volatile("fence.sc.sys;" ::: "memory"); }
OCCL_DEVICE_FUNCTION void store(uint64_t *word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// Words of 32 bits.
OCCL_DEVICE_FUNCTION uint32_t look(const uint32_t *word) {
  return *static_cast<const volatile uint32_t *>(word);
}
OCCL_DEVICE_FUNCTION void say(uint32_t *word, uint32_t value) {
  *static_cast<volatile uint32_t *>(word) = value;
}
/// Their old values; of one device. They order nothing.
OCCL_DEVICE_FUNCTION uint64_t raise(uint64_t *word, uint64_t value) {
  return atomicMax(reinterpret_cast<unsigned long long *>(word), value);
}
OCCL_DEVICE_FUNCTION uint64_t add(uint64_t *word, uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long *>(word), value);
}
OCCL_DEVICE_FUNCTION uint64_t exchangeIf(uint64_t *word, uint64_t expected, uint64_t value) {
  return atomicCAS(reinterpret_cast<unsigned long long *>(word), expected, value);
}
/// The same, to be seen by other devices.
OCCL_DEVICE_FUNCTION uint64_t exchangeForAll(uint64_t *word, uint64_t expected, uint64_t value) {
  return atomicCAS_system(reinterpret_cast<unsigned long long *>(word), expected, value);
}
/// Nanoseconds.
OCCL_DEVICE_FUNCTION uint64_t now() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}
#else
inline uint64_t acquire(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline void release(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
inline void fence() {} // the operations below have it
inline void fenceForAll() {}
inline void storeBehind(uint64_t *word, uint64_t value) { release(word, value); }
inline void fenceAll() { // a fence that checkers of races know
  static uint64_t all = 0;
  __atomic_fetch_add(&all, 0, __ATOMIC_SEQ_CST);
}
inline void store(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
inline uint32_t look(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline void say(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
inline uint64_t raise(uint64_t *word, uint64_t value) {
  uint64_t before = load(word);
  while (before < value && !__atomic_compare_exchange_n(word, &before, value, true,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return before;
}
inline uint64_t add(uint64_t *word, uint64_t value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
inline uint64_t exchangeIf(uint64_t *word, uint64_t expected, uint64_t value) {
  __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
inline uint64_t exchangeForAll(uint64_t *word, uint64_t expected, uint64_t value) {
  return exchangeIf(word, expected, value);
}
inline uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
#endif

// --- groups ---

/// A thread for itself.
struct Thread {
  OCCL_DEVICE_FUNCTION uint32_t rank() const { return 0; }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return 1; }
  OCCL_DEVICE_FUNCTION void sync() const {}
  /// The first thread's.
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const { return value; }
  /// Of all threads' values. What a thread has seen before, all have afterwards.
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const { return value; }
};

#ifdef __CUDACC__
struct Warp {
  OCCL_DEVICE_FUNCTION uint32_t rank() const {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return 32; }
  OCCL_DEVICE_FUNCTION void sync() const { __syncwarp(); }
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const {
    const uint64_t given = __shfl_sync(~0u, static_cast<unsigned long long>(value), 0);
    __syncwarp(); // what the first lane has seen
    return given;
  }
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const {
    auto least = static_cast<unsigned long long>(value);
    for (int away = 16; away > 0; away /= 2) {
      const unsigned long long other = __shfl_xor_sync(~0u, least, away);
      least = other < least ? other : least;
    }
    __syncwarp();
    return least;
  }
};

struct Block {
  OCCL_DEVICE_FUNCTION uint32_t rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return blockDim.x * blockDim.y * blockDim.z; }
  OCCL_DEVICE_FUNCTION void sync() const { __syncthreads(); }
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const {
    __shared__ uint64_t first;
    if (rank() == 0)
      first = value;
    __syncthreads();
    const uint64_t given = first;
    __syncthreads();
    return given;
  }
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const {
    __shared__ unsigned long long least;
    if (rank() == 0)
      least = ~0ull;
    __syncthreads();
    if (value != ~0ull)
      atomicMin(&least, static_cast<unsigned long long>(value));
    __syncthreads();
    const uint64_t found = least;
    __syncthreads();
    return found;
  }
};
#endif

// --- what a request has in memory: laid out by the library, for these functions alone ---

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

struct State {
  // Constant.
  uint64_t isSend, partitions, partitionBytes, bytes, peerRank;
  char *buffer;
  uint64_t *marked, *counted, *units; // of a send; `counted` is null if a message is a partition
  Cut cut;                            // of a send
  const Peer *host;                   // pinned
  HostSide watch;
  Sends *sends;
  // Of this rank.
  alignas(128) uint64_t epoch;
  uint64_t done, misuse;
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
      : s(state), e(load(&state->epoch)),
        isSimple(state->isSend != 0 && state->cut.perMessage == 1 &&
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
    if (acquire(&s->peer.isConnected) != 0)
      return true;
    if (acquire(&s->host->isConnected) == 0)
      return false;
    if (exchangeIf(&s->connecting, 0, 1) != 0)
      return false; // another one is at it: the next look finds it
    const Peer &given = *s->host;
    s->peer.epoch = given.epoch;
    s->peer.arrived = given.arrived;
    s->peer.buffer = given.buffer;
    s->peer.started = given.started;
    s->peer.cut = given.cut;
    release(&s->peer.isConnected, 1);
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
  OCCL_DEVICE_FUNCTION bool isOfReceive(uint64_t q) const {
    return s->isSend == 0 && q < s->partitions;
  }
  OCCL_DEVICE_FUNCTION void misusedReceive(uint64_t q) const {
    misused(s->isSend != 0 ? Misuse::WrongSide : Misuse::NoPartition, q);
  }
  /// One thread, behind the group's barrier. Whether the mark completes its message.
  OCCL_DEVICE_FUNCTION bool mark(uint64_t p) const {
    if (s->isSend == 0 || p >= s->partitions) {
      misused(s->isSend == 0 ? Misuse::WrongSide : Misuse::NoPartition, p);
      return false;
    }
    if (load(&s->done) >= e) {
      misused(Misuse::NoEpoch, p);
      return false;
    }
    fence();
    if (raise(&s->marked[p], e) >= e) {
      misused(Misuse::Twice, p);
      return false;
    }
    if (s->counted == nullptr)
      return true;
    const uint64_t m = p / s->cut.perMessage;
    const bool isLast = add(&s->counted[m], 1) + 1 == e * partitionsOf(m);
    fence(); // what the others of the message have stored is seen
    return isLast;
  }
  OCCL_DEVICE_FUNCTION uint64_t partitionsOf(uint64_t message) const {
    const uint64_t left = s->partitions - message * s->cut.perMessage;
    return left < s->cut.perMessage ? left : s->cut.perMessage;
  }
  /// What was stored before the marks of a complete message is seen.
  OCCL_DEVICE_FUNCTION bool isComplete(uint64_t message) const {
    return s->counted == nullptr ? acquire(&s->marked[message]) >= e
                                 : acquire(&s->counted[message]) >= e * partitionsOf(message);
  }
  /// Whether the receiver has started the epoch. asksPeer: also if its word has not come here, as
  /// it started before it knew of this side; that takes a round trip.
  OCCL_DEVICE_FUNCTION bool hasCredit(bool asksPeer) const {
    return isConnected() &&
           (acquire(&s->peerStarted) >= e || (asksPeer && acquire(s->peer.epoch) >= e));
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
    fenceForAll();
    storeBehind(&arrivals[p], e);
    if (raise(&s->marked[p], e) >= e)
      misused(Misuse::Twice, p);
    fence(); // with this the epoch may end
    storeBehind(&s->units[p], 2 * e);
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
    return load(&s->units[unit]) < 2 * e - 1;
  }
  OCCL_DEVICE_FUNCTION bool claim(uint64_t unit) const {
    const uint64_t before = load(&s->units[unit]);
    return before < 2 * e - 1 && exchangeIf(&s->units[unit], before, 2 * e - 1) == before;
  }
  OCCL_DEVICE_FUNCTION bool isStored(uint64_t unit) const {
    return acquire(&s->units[unit]) >= 2 * e;
  }
  /// One thread, behind the group's barrier after the copy.
  OCCL_DEVICE_FUNCTION void stored(uint64_t unit) const {
    fenceForAll();
    storeBehind(&s->peer.arrived[unit], e);
    storeBehind(&s->units[unit], 2 * e);
  }
  /// Whether partition q of a receive is there; one thread of a group.
  OCCL_DEVICE_FUNCTION bool hasCome(uint64_t q) {
    if (arrivals == nullptr) {
      if (!isConnected())
        return false;
      const Cut &cut = s->peer.cut;
      arrivals = s->peer.arrived;
      isUnitAPartition = s->partitionBytes != 0 && cut.messageBytes == s->partitionBytes &&
                         cut.unitsOfMessage == 1;
    }
    return isUnitAPartition ? acquire(&arrivals[q]) >= e : hasArrived(q);
  }
  /// The same if it is connected.
  OCCL_DEVICE_FUNCTION bool hasArrived(uint64_t q) const {
    const uint64_t begin = q * s->partitionBytes, end = begin + s->partitionBytes;
    if (begin == end)
      return true;
    const Cut &cut = s->peer.cut;
    uint64_t unit = unitAt(cut, begin);
    for (const uint64_t last = unitAt(cut, end - 1); unit <= last; ++unit)
      if (acquire(&s->peer.arrived[unit]) < e)
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
    if (isLong) {
      store(s->watch.waitingSince, time);
      say(s->watch.waitsFor, static_cast<uint32_t>(s->peerRank) + 1);
    }
    return acquire(&s->host->isFreed) != 0;
  }
};

/// How long a thread has waited, in nanoseconds.
class Patience {
public:
  OCCL_DEVICE_FUNCTION explicit Patience(uint64_t atMost) : begin(now()), atMost(atMost) {}

  /// After a look in vain.
  OCCL_DEVICE_FUNCTION Wait look(const Part &part) {
    const uint64_t time = now();
    if (part.hasFailed() || load(&part.s->misuse) != 0)
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

// --- copies ---

#ifdef __CUDACC__
template <class Word, class Group>
__device__ uint64_t copyWords(Group group, char *to, const char *from, uint64_t done,
                              uint64_t bytes) {
  constexpr uint32_t kAtOnce = 8;
  const uint64_t number = (bytes - done) / sizeof(Word), step = group.size();
  auto *into = reinterpret_cast<Word *>(to + done);
  const auto *of = reinterpret_cast<const Word *>(from + done);
  for (uint64_t i = group.rank(); i < number; i += kAtOnce * step) {
    Word loaded[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * step < number)
        loaded[k] = of[i + k * step];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * step < number)
        into[i + k * step] = loaded[k];
  }
  return done + number * sizeof(Word);
}
template <class Group>
__device__ void copy(Group group, char *to, const char *from, uint64_t bytes) {
  const auto ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  uint64_t done = 0;
  if (ends % sizeof(uint4) == 0)
    done = copyWords<uint4>(group, to, from, done, bytes);
  if (ends % sizeof(uint32_t) == 0)
    done = copyWords<uint32_t>(group, to, from, done, bytes);
  copyWords<uint8_t>(group, to, from, done, bytes);
}
#else
inline void copy(Thread, char *to, const char *from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

/// Stores the unit at the receiver, who has started, if nobody else does.
template <class Group>
OCCL_DEVICE_FUNCTION bool storeUnit(Group group, const Part &part, uint64_t unit) {
  const bool isMine = group.rank() == 0 && !part.hasFailed() && part.claim(unit);
  if (group.broadcast(isMine ? 1 : 0) == 0)
    return false;
  uint64_t begin, end;
  part.bytesOf(unit, begin, end);
  copy(group, part.s->peer.buffer + begin, part.s->buffer + begin, end - begin);
  group.sync();
  if (group.rank() == 0)
    part.stored(unit);
  return true;
}

/// Some units of a send: first, first + step, ..., less than end.
struct Units {
  uint64_t first, end, step;
};
/// What became of them: whether some were stored here, whether some are not stored yet, and whether
/// some of these are only waiting for the receiver to start.
struct Stored {
  bool some, left, deferred;
};

/// Stores those whose messages are complete and that nobody has taken, if the receiver has started.
template <class Group>
OCCL_DEVICE_FUNCTION Stored storeUnits(Group group, const Part &part, Units units, bool asksPeer) {
  constexpr uint64_t kNone = ~uint64_t{0};
  Stored result = {false, false, false};
  const bool mayStore = group.broadcast(group.rank() == 0 && part.hasCredit(asksPeer) ? 1 : 0) != 0;
  // Each thread looks at one, the group stores the first that can be.
  for (uint64_t first = units.first; first < units.end;) {
    const uint64_t mine = first + group.rank() * units.step;
    const bool isLeft = mine < units.end && !part.isStored(mine);
    const bool couldBe =
        isLeft && part.isClaimable(mine) && part.isComplete(mine / part.s->cut.unitsOfMessage);
    const bool can = mayStore && couldBe;
    const uint64_t chosen = group.smallest(can ? mine : kNone);
    const bool isPassed = isLeft && (chosen == kNone || mine < chosen);
    result.left |= group.smallest(isPassed ? 0 : 1) == 0;
    if (!mayStore)
      result.deferred |= group.smallest(isLeft && couldBe ? 0 : 1) == 0;
    if (chosen == kNone) {
      first += group.size() * units.step;
      continue;
    }
    const bool hasStored = storeUnit(group, part, chosen);
    result.some |= hasStored;
    result.left |= !hasStored; // another one has claimed it
    first = chosen + units.step;
  }
  return result;
}

/// Those of all sends of the rank that marks had to leave. Before that, `deferred` is taken back: a
/// mark that leaves something now says so again.
template <class Group> OCCL_DEVICE_FUNCTION void storeDeferred(Group group, Sends &sends) {
  uint64_t number = 0;
  if (group.rank() == 0 && load(&sends.deferred) != 0) {
    number = load(&sends.number);
    add(&sends.scanners, 1);
    exchangeIf(&sends.deferred, 1, 0);
    fenceAll();
  }
  number = group.broadcast(number);
  if (number == 0) // there is no send that could have left something
    return;
  bool isLeft = false;
  for (uint64_t i = 0; i < number; ++i) {
    auto *state = reinterpret_cast<State *>(
        group.broadcast(group.rank() == 0 ? load(reinterpret_cast<uint64_t *>(&sends.of[i])) : 0));
    if (state == nullptr)
      continue;
    const Part part(state);
    const bool isOpen = group.broadcast(group.rank() == 0 && load(&state->done) < part.e) != 0;
    isLeft |= isOpen && storeUnits(group, part, {0, state->cut.units(), 1}, true).deferred;
  }
  group.sync();
  if (group.rank() == 0 && isLeft)
    release(&sends.deferred, 1);
  if (group.rank() == 0) {
    fenceAll();
    add(&sends.scanners, ~uint64_t{0});
  }
}

// --- for kernels ---

/// Partition p of a send is complete: once all of its message are, the group stores it to the
/// receiver. Never waits; what cannot be stored, as the receiver has not started, is left to who
/// waits. Large messages want large groups: a thread for itself copies a megabyte in milliseconds.
/// What bulk copies (TMA) have written each thread that issued some makes visible before:
/// cp.async.bulk.wait_group 0, then fence.proxy.async.
template <class Group> OCCL_DEVICE_FUNCTION void ready(Group group, Part &part, uint64_t p) {
  group.sync();
  uint64_t how = 0; // 1: it completes its message; 2: it is this group's, and not marked yet
  if (group.rank() == 0)
    how = part.isSimple && part.takeUnmarked(p) ? 2 : part.mark(p) ? 1 : 0;
  how = group.broadcast(how);
  if (how == 0)
    return;
  if (how == 2) {
    const uint64_t bytes = part.s->partitionBytes, at = p * bytes;
    copy(group, part.s->peer.buffer + at, part.s->buffer + at, bytes);
    group.sync();
    if (group.rank() == 0)
      part.storedUnmarked(p);
    return;
  }
  const uint64_t number = part.s->cut.unitsOfMessage, first = p / part.s->cut.perMessage * number;
  const Stored stored = storeUnits(group, part, {first, first + number, 1}, false);
  if (stored.deferred && group.rank() == 0)
    release(&part.s->sends->deferred, 1);
}

/// Partitions first to last, both included: all complete.
template <class Group>
OCCL_DEVICE_FUNCTION void readyRange(Group group, Part &part, uint64_t first, uint64_t last) {
  if (first > last || last >= part.s->partitions)
    return part.misused(Misuse::NoPartition, last);
  for (uint64_t p = first; p <= last; ++p)
    ready(group, part, p);
}

/// Whether partition q of a receive is there. Without what marks have left.
OCCL_DEVICE_FUNCTION bool isThere(Part &part, uint64_t q) {
  return part.hasCome(q) || acquire(&part.s->done) >= part.e;
}

/// Whether partition q of a receive may be read by this thread: one look. Without an epoch: yes.
OCCL_DEVICE_FUNCTION bool arrived(Part &part, uint64_t q) {
  if (!part.isOfReceive(q)) {
    part.misusedReceive(q);
    return false;
  }
  if (isThere(part, q))
    return true;
  storeDeferred(Thread(), *part.s->sends);
  return false;
}

/// Until partition q of a receive has arrived, the communicator has failed or the sender freed its
/// request, or for about so many nanoseconds. A kernel that waits holds its place on the device: a
/// program that waits without bound sees to it that what it waits for does not need that place.
template <class Group>
OCCL_DEVICE_FUNCTION Wait wait(Group group, Part &part, uint64_t q, uint64_t nanoseconds) {
  if (!part.isOfReceive(q)) {
    if (group.rank() == 0)
      part.misusedReceive(q);
    return Wait::Failed;
  }
  constexpr uint32_t kLooks = 32; // of one thread, before all look for what marks have left
  Patience patience(nanoseconds);
  for (;;) {
    Wait found = kGoOn;
    if (group.rank() == 0) {
      bool isHere = false;
      for (uint32_t i = 0; i < kLooks && !isHere; ++i)
        isHere = isThere(part, q);
      found = isHere ? Wait::Arrived : patience.look(part);
      if (found == Wait::Failed && isThere(part, q)) // it may have come before that
        found = Wait::Arrived;
    }
    found = static_cast<Wait>(group.broadcast(static_cast<uint64_t>(found)));
    if (found != kGoOn)
      return found;
    storeDeferred(group, *part.s->sends);
  }
}

/// A send: stores what could not be when it was marked, and returns Arrived once all has been
/// stored; else as wait(). Needed only by kernels that depend on that before they end.
template <class Group>
OCCL_DEVICE_FUNCTION Wait flush(Group group, Part &part, uint64_t nanoseconds) {
  if (part.s->isSend == 0) {
    if (group.rank() == 0)
      part.misused(Misuse::WrongSide, 0);
    return Wait::Failed;
  }
  Patience patience(nanoseconds);
  for (;;) {
    const Stored stored = storeUnits(group, part, {0, part.s->cut.units(), 1}, true);
    if (!stored.left)
      return Wait::Arrived;
    const Wait mine = group.rank() == 0 ? patience.look(part) : kGoOn;
    const auto found = static_cast<Wait>(group.broadcast(static_cast<uint64_t>(mine)));
    if (found != kGoOn)
      return found;
  }
}

/// One thread: the next epoch, as occlPstartOn has it; the last one has ended.
OCCL_DEVICE_FUNCTION void start(occlPartDevice_t handle) {
  Part part(handle);
  fenceAll(); // what this rank has done before is over for who sees that it has started
  if (load(&part.s->done) != part.e || exchangeForAll(&part.s->epoch, part.e, part.e + 1) != part.e)
    return part.misused(Misuse::Active, 0);
  if (part.s->isSend == 0 && part.isConnected())
    release(part.s->peer.started, part.e + 1);
}

} // namespace detail

using detail::arrived;
using detail::flush;
using detail::Part;
using detail::ready;
using detail::readyRange;
using detail::start;
using detail::Thread;
using detail::wait;
using detail::Wait;
#ifdef __CUDACC__
using detail::Block;
using detail::Warp;
#endif

} // namespace occl::device

#endif // OCCL_DEVICE_CUH
