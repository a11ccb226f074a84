// Ranks with resident daemons that share one device, and all-reduces of floats on them: for tests
// and measurements where there is a GPU.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/cuda/resident/resident_daemon.h"
#include "runtime/cuda/resident/testing/test_tenant.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::cuda::resident {

/// Memory of the device, for as long as it lives.
class DevicePiece {
public:
  explicit DevicePiece(uint64_t bytes);
  ~DevicePiece();
  DevicePiece(const DevicePiece &) = delete;
  DevicePiece &operator=(const DevicePiece &) = delete;

  char *begin() const { return memory; }

private:
  char *memory = nullptr;
};

/// Every failed CUDA call ends the process.
class OneDevice {
public:
  OneDevice(uint32_t numRanks, const DaemonOptions &options);
  ~OneDevice();

  uint32_t numRanks() const { return static_cast<uint32_t>(daemons.size()); }
  ResidentDaemon &daemon(uint32_t rank) { return *daemons[rank]; }
  TestTenant &tenant(uint32_t rank) { return *tenants[rank]; }
  /// Of submissions from now on.
  void setTimeout(std::chrono::milliseconds atMost) { timeout = atMost; }
  uint32_t numCollectives() const { return static_cast<uint32_t>(collectives.size()); }

  /// An all-reduce of so many floats on all ranks, with buffers of its own.
  Status add(const plan::Plan &plan, uint64_t count);
  /// Inputs of all collectives, by phase; outputs are overwritten with what no result is.
  void setInputs(uint32_t phase);
  /// Whether all outputs are the sums of the phase's inputs.
  Status check(uint32_t phase);

  /// Until the window has room.
  StatusOr<uint64_t> submit(uint32_t rank, uint32_t collective, uint8_t priority = 0,
                            ResidentDaemon::Callback callback = {});

private:
  struct Rank {
    std::shared_ptr<const interpreter::Binding> binding;
    DeviceCollective device;
    uint32_t number = 0;    // in the daemon
    uint64_t submitted = 0; // invocations
    char *input = nullptr, *output = nullptr;
  };
  struct Collective {
    uint64_t count = 0;
    std::vector<Rank> ranks;
  };

  char *take(uint64_t bytes);
  void layOut(Collective &collective, const plan::Plan &plan, uint32_t slot);

  std::vector<std::unique_ptr<DevicePiece>> pieces;
  std::vector<char *> arenas;        // by rank
  std::vector<uint64_t> usedOfArena; // by rank
  std::vector<Collective> collectives;
  std::chrono::milliseconds timeout{30000};
  std::vector<std::unique_ptr<TestTenant>> tenants;
  std::vector<std::unique_ptr<ResidentDaemon>> daemons; // end before the memory
};

} // namespace occl::cuda::resident
