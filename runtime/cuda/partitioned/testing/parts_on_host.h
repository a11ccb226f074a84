// A send and its receive in the memory of one host, whose threads are kernels. For tests.
#pragma once

#include "runtime/api/occl_device.cuh"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace occl::device::detail {

inline constexpr uint64_t kForEver = ~uint64_t{0} >> 1;

/// A send and its receive, of bytes.
class Pair {
public:
  Pair(uint64_t partitions, uint64_t bytes, uint64_t perMessage, uint64_t unitBytes,
       uint64_t receivers, bool isConnected = true)
      : from(partitions * bytes), to(partitions * bytes), marked(partitions),
        counted((partitions + perMessage - 1) / perMessage) {
    Cut cut;
    cut.bytes = partitions * bytes;
    cut.messageBytes = perMessage * bytes;
    cut.messages = counted.size();
    cut.perMessage = perMessage;
    cut.unitBytes = unitBytes;
    cut.unitsOfMessage = std::max<uint64_t>(1, (cut.messageBytes + unitBytes - 1) / unitBytes);
    units.resize(cut.units());
    words.resize(cut.units());
    send = common(Side::Send, partitions, bytes, from.data());
    send.cut = cut;
    send.marked = marked.data();
    send.counted = perMessage > 1 ? counted.data() : nullptr;
    send.units = units.data();
    send.host = &sendPeer;
    receive =
        common(Side::Receive, receivers, receivers == 0 ? 0 : cut.bytes / receivers, to.data());
    receive.host = &receivePeer;
    table.number = 1;
    table.of[0] = &send;
    if (isConnected)
      connect();
  }
  void connect() {
    sendPeer.epoch = &receive.epoch;
    sendPeer.arrived = words.data();
    sendPeer.buffer = to.data();
    releaseWord(&sendPeer.isConnected, 1);
    receivePeer.arrived = words.data();
    receivePeer.started = &send.peerStarted;
    receivePeer.cut = send.cut;
    releaseWord(&receivePeer.isConnected, 1);
  }
  /// Both sides' next epoch, with data of its own.
  void start(uint64_t key) {
    fill(key);
    detail::start({&send});
    detail::start({&receive});
  }
  void fill(uint64_t key) {
    for (uint64_t i = 0; i < from.size(); ++i)
      from[i] = byteOf(key, i);
  }
  static char byteOf(uint64_t key, uint64_t i) { return static_cast<char>(key * 131 + i * 7); }
  /// As the waits of streams.
  Wait endSend() {
    Part part(&send);
    const Wait found = flush(Thread(), part, kForEver);
    if (found == Wait::Arrived)
      releaseWord(&send.done, part.e);
    return found;
  }
  void endReceive() {
    const Part part(&receive);
    for (uint64_t u = 0; u < words.size(); ++u)
      while (!part.isConnected() || acquireWord(&words[u]) < part.e)
        std::this_thread::yield();
    releaseWord(&receive.done, part.e);
  }
  bool isRight(uint64_t key, uint64_t first, uint64_t end) const {
    for (uint64_t i = first; i < end; ++i)
      if (to[i] != byteOf(key, i))
        return false;
    return true;
  }

  std::vector<char> from, to;
  State send{}, receive{};
  Peer sendPeer{}, receivePeer{};
  Sends table{};
  uint32_t abort = 0, waitsFor = 0, hasGivenUp = 0;
  uint64_t waitingSince = 0;
  std::vector<uint64_t> marked, counted, units, words;

private:
  State common(Side side, uint64_t partitions, uint64_t bytes, char *buffer) {
    State made{};
    made.side = side;
    made.partitions = partitions;
    made.partitionBytes = bytes;
    made.buffer = buffer;
    made.watch = {&abort, &waitsFor, &waitingSince, &hasGivenUp};
    made.sends = &table;
    return made;
  }
};

inline Misuse misuseOf(const State &state) {
  return static_cast<Misuse>(state.misuse >> (kMisusePartitionBits + kMisuseBlockBits));
}

} // namespace occl::device::detail
