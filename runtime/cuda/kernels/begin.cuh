// How an invocation begins on a device: see device_collective.h. All functions are called by all
// lanes of a warp, a rank each.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::cuda {

__device__ inline uint32_t laneOfWarp() { return threadIdx.x % 32; }

/// How the begin is told. Release: after all that happened before on this rank, as this lane knows
/// it; one fence for all its words. Relaxed: for a kernel that begins when what it relies on is
/// over in its stream. What that has stored is in memory, and what it has loaded it has: see
/// docs/gpu-kernels.md.
enum class Telling { Release, Relaxed };

/// Tells the other ranks that this one has begun invocation `number`: it has finished the one
/// before. Once a rank. buffers: input and output, in this rank's arena if the program is direct,
/// or null if it has none.
template <Telling kHow = Telling::Release>
__device__ void announceBegin(const DeviceCollective &collective, uint64_t number,
                              char *const buffers[2]) {
  uint32_t peer = laneOfWarp();
  if (peer >= collective.numRanks || peer == collective.rank)
    return;
  // Earlier stores of this rank come before the word that lets others begin. The words of its
  // buffers and of its call come before that word, too.
  if (kHow == Telling::Release || collective.isAcrossMachines)
    fenceSystem();
  RankRecord *record = recordIn(collective.arenas[peer], collective.slot, collective.rank);
  if (collective.isDirect || renewsBuffers(number)) {
    char *arena = collective.arenas[collective.rank];
    for (uint32_t kind = 0; kind < 2; ++kind) {
      const bool isAccessed = collective.isDirect && buffers[kind] != nullptr;
      storeWord(&record->buffers[collective.turnOf(number)][kind],
                bufferWord(number, isAccessed ? static_cast<uint64_t>(buffers[kind] - arena) : 0));
    }
  }
  storeWord(&record->signatures[collective.turnOf(number)],
            signatureWord(number, collective.signature));
  storeWord(&record->begun, number + 1);
}

/// The lines of LL in the block that the invocation before `number` has used on this rank. All that
/// came has been waited for, and nobody stores there before this rank says that it begins `number`.
__device__ __noinline__ inline void clearLines(const DeviceCollective &collective,
                                               uint64_t number) {
  char *arena = collective.arenas[collective.rank];
  const uint64_t where = loadWord(&recordIn(arena, collective.slot, collective.rank)->where) - 1;
  char *lines = arena + where + collective.linesOffset +
                collective.blockOf(number - 1) * collective.linesStride;
  for (uint64_t at = laneOfWarp() * sizeof(uint4); at < collective.linesBytes;
       at += 32 * sizeof(uint4))
    *reinterpret_cast<uint4 *>(lines + at) = make_uint4(0, 0, 0, 0);
  fenceSystem();
  __syncwarp();
}

/// What a lane has found out about its rank.
struct PeerBegin {
  bool isReady = true;
  bool isRegistered = true;
  uint64_t where = 0; // of its arena blocks, in its arena
  uint64_t buffers[2] = {0, 0};
};

/// What a lane's rank has said. These loads do not wait for each other: what relies on them are
/// stores to where the peer no longer looks, loads that acquire by themselves, and, in direct
/// programs, what comes after acquireBuffers().
struct PeerWords {
  uint64_t where = 0, begun = 0;
  uint64_t buffers[2] = {0, 0};
};

/// loadBuffers(record, words): of direct programs, last.
template <class LoadBuffers>
__device__ PeerWords loadPeerWith(const DeviceCollective &collective,
                                  const LoadBuffers &loadBuffers) {
  PeerWords words;
  uint32_t peer = laneOfWarp();
  if (peer >= collective.numRanks)
    return words;
  const RankRecord *record = recordIn(collective.arenas[collective.rank], collective.slot, peer);
  words.where = loadWord(&record->where);
  words.begun = loadWord(&record->begun);
  if (collective.isDirect)
    loadBuffers(*record, words);
  return words;
}

/// Which invocation it will be is not known yet.
__device__ inline PeerWords loadPeer(const DeviceCollective &collective) {
  return loadPeerWith(collective, [](const RankRecord &, PeerWords &) {});
}

/// The same for invocation `number`, acquiring: what acquireBuffers() does comes with the same
/// trip. The word that a peer says last is loaded last, and acquired; if another one is older than
/// that it says so itself.
__device__ inline PeerWords loadPeerAcquiring(const DeviceCollective &collective, uint64_t number) {
  return loadPeerWith(collective, [&](const RankRecord &record, PeerWords &words) {
    const uint32_t turn = collective.turnOf(number);
    const uint64_t input = loadWord(&record.buffers[turn][0]);
    words.buffers[1] = acquireWord(&record.buffers[turn][1]);
    words.buffers[0] = input;
  });
}

/// Whether this lane's rank, having said `words`, lets invocation `number` begin here.
__device__ inline PeerBegin judgePeer(const DeviceCollective &collective, uint64_t number,
                                      const PeerWords &words) {
  PeerBegin found;
  uint32_t peer = laneOfWarp();
  if (peer >= collective.numRanks)
    return found;
  // Whether it has memory for this, and lets the invocation begin there.
  found.isRegistered = words.where != 0;
  found.where = words.where - 1;
  found.isReady = found.isRegistered;
  if (peer == collective.rank)
    return found;
  found.isReady &= collective.letsBegin(words.begun, number);
  // Of a direct program also where its buffers are.
  for (uint32_t kind = 0; collective.isDirect && kind < 2; ++kind) {
    found.isReady &= isOfInvocation(words.buffers[kind], number);
    found.buffers[kind] = offsetIn(words.buffers[kind]);
  }
  return found;
}

/// Once this lane's rank is ready: what it did before it said where its buffers are comes before
/// what follows here.
__device__ inline void acquireBuffers(const DeviceCollective &collective, uint64_t number) {
  uint32_t peer = laneOfWarp();
  if (collective.isDirect && peer < collective.numRanks && peer != collective.rank)
    acquireWord(&recordIn(collective.arenas[collective.rank], collective.slot, peer)
                     ->buffers[collective.turnOf(number)][1]); // the last one to be said
}

/// What this lane's rank has said of invocation `number`.
enum class Said : uint32_t { Nothing, TheSame, Another };
__device__ inline Said whatPeerCalls(const DeviceCollective &collective, uint64_t number) {
  uint32_t peer = laneOfWarp();
  if (peer >= collective.numRanks || peer == collective.rank)
    return Said::TheSame;
  const uint64_t word =
      loadWord(&recordIn(collective.arenas[collective.rank], collective.slot, peer)
                    ->signatures[collective.turnOf(number)]);
  if (!isSignatureOf(word, number))
    return Said::Nothing;
  return word == signatureWord(number, collective.signature) ? Said::TheSame : Said::Another;
}

/// The places of this lane's rank, and, of the own rank, all of them; only if it is ready. Whether
/// all of these are multiples of kPlaceAlignment.
__device__ inline bool setPlaces(const DeviceCollective &collective, uint64_t number,
                                 const PeerBegin &found, char *const buffers[2], char **places) {
  using namespace interpreter;
  uint32_t peer = laneOfWarp();
  if (peer >= collective.numRanks)
    return true;
  // Where its messages lie, for every program.
  char *blocks = collective.arenas[peer] + found.where;
  char *block = blocks + collective.blockOffset(number, peer);
  char *scratch = blocks + collective.scratchOffsets[peer];
  places[arenaPlace(peer)] = block;
  uint64_t bits = reinterpret_cast<uintptr_t>(block) | reinterpret_cast<uintptr_t>(scratch);
  bool isOwn = peer == collective.rank;
  if (isOwn) {
    bits |= reinterpret_cast<uintptr_t>(buffers[0]) | reinterpret_cast<uintptr_t>(buffers[1]);
    places[0] = buffers[0];
    places[1] = buffers[1];
    places[2] = scratch;
    places[kProgressPlace] = block + collective.progressOffset;
  }
  // Where its buffers lie, for programs that access them.
  if (!collective.isDirect)
    return bits % kPlaceAlignment == 0;
  for (uint32_t kind = 0; kind < 2; ++kind)
    places[peerBufferPlace(collective.numRanks, peer, kind)] =
        isOwn ? buffers[kind] : collective.arenas[peer] + found.buffers[kind];
  places[peerBufferPlace(collective.numRanks, peer, 2)] = scratch;
  bits |= isOwn ? 0 : found.buffers[0] | found.buffers[1];
  return bits % kPlaceAlignment == 0;
}

} // namespace occl::cuda
