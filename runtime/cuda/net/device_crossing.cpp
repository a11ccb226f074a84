// Hands the network's sending thread what it is to put for kernels, and waits at the end until that
// is done.
#include "runtime/cuda/net/device_crossing.h"

#include "runtime/sync/thread.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

int64_t nanosecondsNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch())
      .count();
}

std::vector<std::span<std::byte>> heapsOf(const daemon::Fabric &fabric) {
  std::vector<std::span<std::byte>> heaps;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    heaps.push_back(fabric.of(r).heap());
  return heaps;
}

} // namespace

DeviceCrossing::DeviceCrossing(daemon::Fabric &fabric, const ControlBlock &own,
                               const PairGeometry &pairs, uint64_t firstCall)
    : fabric(fabric), network(*fabric.network()), own(own), remote(fabric.remoteRanks()),
      arenas(fabric.rank(), heapsOf(fabric)), ofCalls(arenas, remote, firstCall),
      ofTransfers(arenas, pairs), hasCard(fabric.numRanks(), false), passes(fabric.numRanks()) {
  network.setDeviceWords(this);
}

DeviceCrossing::~DeviceCrossing() {
  awaitSent();
  network.setDeviceWords(nullptr);
}

/// A pass that began after this did has put all that was there; after a failure there are none.
void DeviceCrossing::awaitSent() {
  const auto begin = nanosecondsNow();
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    // Two more passes: one may have begun before the last stores.
    const uint64_t before = remote[r] ? passes[r].load(std::memory_order_acquire) : 0;
    while (remote[r] && passes[r].load(std::memory_order_acquire) < before + 2 && network.isUp(r) &&
           !fabric.failed()) {
      // Not while something moves, however slowly.
      const auto since = std::max(begin, lastMoved.load(std::memory_order_relaxed));
      if (std::chrono::nanoseconds(nanosecondsNow() - since) > net::Network::kFarewell) {
        std::fprintf(stderr,
                     "occl: rank %u: its communicator is destroyed, and rank %u takes nothing of "
                     "what was sent to it; the rest is dropped\n",
                     fabric.rank(), r);
        return;
      }
      network.wakeSender();
      sleepFor(50us);
    }
  }
}

void DeviceCrossing::expect() {
  // The sending thread looks more often as long as something has moved lately.
  lastMoved.store(nanosecondsNow(), std::memory_order_relaxed);
  network.wakeSender();
}

/// The word that is stored last has the card's state.
bool DeviceCrossing::sendCard(uint32_t peer, net::Endpoint &endpoint) {
  if (hasCard[peer])
    return true;
  static_assert(offsetof(DeviceCard, state) == 0 && offsetof(ControlBlock, card) == 0);
  const auto card = std::as_bytes(std::span(&own.card, 1));
  // The card's state is its first word, which is put behind the rest.
  net::Put what;
  what.region = net::kMirrorRegion;
  what.offset = sizeof what.word;
  what.bytes = card.subspan(sizeof what.word);
  what.hasWord = true;
  std::memcpy(&what.word, card.data(), sizeof what.word);
  return hasCard[peer] = endpoint.put(what) != net::Posted::Full;
}

bool DeviceCrossing::send(uint32_t peer, net::Endpoint &endpoint) {
  // Both are served, even if there is no room for all of the first.
  const bool all = ofCalls.send(peer, endpoint) & ofTransfers.send(peer, endpoint);
  if (ofCalls.hasMoved() || ofTransfers.hasMoved())
    lastMoved.store(nanosecondsNow(), std::memory_order_relaxed);
  if (all)
    passes[peer].fetch_add(1, std::memory_order_release);
  return all;
}

/// Kernels ring nobody. What moves is moved at once; behind it somebody computes.
std::chrono::nanoseconds DeviceCrossing::pause() {
  const std::chrono::nanoseconds still(nanosecondsNow() -
                                       lastMoved.load(std::memory_order_relaxed));
  return still < 100us ? 0ns : still < 1s ? 50us : 250us;
}

} // namespace occl::cuda
