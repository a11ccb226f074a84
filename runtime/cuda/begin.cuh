// How an invocation begins on a device: see device_collective.h. All functions are called by all
// lanes of the first warp, a rank each.
#pragma once

#include "runtime/cuda/device_collective.h"
#include "runtime/interpreter/invocation.h"

#include <cstdint>

namespace occl::cuda {

__device__ inline uint64_t acquireWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline uint64_t loadWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void releaseWord(uint64_t *word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

/// Tells the other ranks that this one has begun invocation `number`: it has finished the one
/// before. Once a rank. buffers: input and output, in this rank's arena if the program is direct.
__device__ inline void announceBegin(const DeviceCollective &collective, uint64_t number,
                                     char *const buffers[2]) {
  uint32_t peer = threadIdx.x;
  if (peer >= collective.numRanks || peer == collective.rank)
    return;
  RankRecord *record = recordIn(collective.arenas[peer], collective.slot, collective.rank);
  if (collective.isDirect) {
    char *arena = collective.arenas[collective.rank];
    for (uint32_t kind = 0; kind < 2; ++kind)
      releaseWord(&record->buffers[number % 2][kind],
                  bufferWord(number, static_cast<uint64_t>(buffers[kind] - arena)));
  }
  releaseWord(&record->begun, number + 1);
}

/// What a lane has found out about its rank.
struct PeerBegin {
  bool isReady = true;
  bool isRegistered = true;
  uint64_t where = 0; // of its arena blocks, in its arena
  uint64_t buffers[2] = {0, 0};
};

/// What a lane's rank has said, but for its buffers. These loads do not wait for each other: what
/// relies on them are stores to where the peer no longer looks, and loads that acquire by
/// themselves.
struct PeerWords {
  uint64_t where = 0, begun = 0;
};

__device__ inline PeerWords loadPeer(const DeviceCollective &collective) {
  PeerWords words;
  uint32_t peer = threadIdx.x;
  if (peer >= collective.numRanks)
    return words;
  const RankRecord *record = recordIn(collective.arenas[collective.rank], collective.slot, peer);
  words.where = loadWord(&record->where);
  words.begun = loadWord(&record->begun);
  return words;
}

/// Whether this lane's rank, having said `words`, lets invocation `number` begin here.
__device__ inline PeerBegin judgePeer(const DeviceCollective &collective, uint64_t number,
                                      const PeerWords &words) {
  PeerBegin found;
  uint32_t peer = threadIdx.x;
  if (peer >= collective.numRanks)
    return found;
  found.isRegistered = words.where != 0;
  found.where = words.where - 1;
  found.isReady = found.isRegistered;
  if (peer == collective.rank)
    return found;
  const RankRecord *record = recordIn(collective.arenas[collective.rank], collective.slot, peer);
  found.isReady &= words.begun + collective.ring >= number + 2;
  for (uint32_t kind = 0; collective.isDirect && kind < 2; ++kind) {
    uint64_t word = acquireWord(&record->buffers[number % 2][kind]);
    found.isReady &= isOfInvocation(word, number);
    found.buffers[kind] = offsetIn(word);
  }
  return found;
}

/// Looks once.
__device__ inline PeerBegin pollBegin(const DeviceCollective &collective, uint64_t number) {
  return judgePeer(collective, number, loadPeer(collective));
}

/// The places of this lane's rank, and, of the own rank, all of them; only if it is ready.
__device__ inline void setPlaces(const DeviceCollective &collective, uint64_t number,
                                 const PeerBegin &found, char *const buffers[2], char **places) {
  using namespace interpreter;
  uint32_t peer = threadIdx.x;
  if (peer >= collective.numRanks)
    return;
  char *blocks = collective.arenas[peer] + found.where;
  char *block = blocks + number % collective.ring * collective.ringStrides[peer];
  char *scratch = blocks + collective.ringBytes[peer];
  places[arenaPlace(peer)] = block;
  bool isOwn = peer == collective.rank;
  if (isOwn) {
    places[0] = buffers[0];
    places[1] = buffers[1];
    places[2] = scratch;
    places[kProgressPlace] = block + collective.progressOffset;
  }
  if (!collective.isDirect)
    return;
  for (uint32_t kind = 0; kind < 2; ++kind)
    places[peerBufferPlace(collective.numRanks, peer, kind)] =
        isOwn ? buffers[kind] : collective.arenas[peer] + found.buffers[kind];
  places[peerBufferPlace(collective.numRanks, peer, 2)] = scratch;
}

} // namespace occl::cuda
