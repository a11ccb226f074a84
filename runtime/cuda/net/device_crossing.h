// What crosses between machines for a rank on a device: its card, what its kernels store for calls,
// and for transfers. See docs/decisions/gpu/several-machines.md.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/cuda/net/arenas.h"
#include "runtime/cuda/net/calls_crossing.h"
#include "runtime/cuda/net/transfers_crossing.h"
#include "runtime/net/device_words.h"
#include "runtime/net/network.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class DeviceCrossing final : public net::DeviceWords {
public:
  /// Of the fabric's rank, which is connected to ranks of other islands; it outlives the result,
  /// and its sending thread serves the result from now on. Heaps are arenas. own: in the rank's
  /// segment, where its control block is; its card is Ready. firstCall: the number of the first
  /// call.
  DeviceCrossing(daemon::Fabric &fabric, const ControlBlock &own, const PairGeometry &pairs,
                 uint64_t firstCall);
  /// Waits first until what this rank's kernels have stored is on its way, unless for two seconds
  /// nothing of it moves.
  ~DeviceCrossing() override;

  CallsCrossing &calls() { return ofCalls; }
  /// By rank.
  const std::vector<bool> &isRemote() const { return remote; }
  /// Kernels are about to store something.
  void expect();

  bool sendCard(uint32_t peer, net::Endpoint &endpoint) override;
  bool send(uint32_t peer, net::Endpoint &endpoint) override;
  std::chrono::nanoseconds pause() override;

private:
  void awaitSent();

  daemon::Fabric &fabric;
  net::Network &network;
  const ControlBlock &own;
  const std::vector<bool> remote;
  const HostArenas arenas;
  CallsCrossing ofCalls;
  TransfersCrossing ofTransfers;
  std::vector<bool> hasCard;            // the sending thread's
  std::vector<Atomic<uint64_t>> passes; // by rank: how often all was put for it
  Atomic<int64_t> lastMoved{0};         // nanoseconds of the steady clock
};

} // namespace occl::cuda
