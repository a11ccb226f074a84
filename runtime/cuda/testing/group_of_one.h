// A rank whose peers are memory alone, of this process or of others that never come nor go.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/tables/device_collective.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::cuda::testing {

/// Rank 0 of so many. Thread safety: none.
class GroupOfOne : public bootstrap::Group {
public:
  GroupOfOne(uint32_t numRanks, bool isAcrossProcesses)
      : blocks(numRanks), pages(numRanks, std::vector<std::byte>(kRecordBytes)) {
    processes = isAcrossProcesses;
    mapped.resize(numRanks);
    for (uint32_t r = 0; r < numRanks; ++r)
      members.push_back({1, isAcrossProcesses ? r + 1 : 1});
    for (auto &block : blocks)
      block = std::make_unique<ControlBlock>();
  }

  bool isAlive(uint32_t) const override { return true; }
  Status barrier(const Deadline &) override { return {}; }

  std::vector<DeviceMemory::HostMemory> hosts() {
    std::vector<DeviceMemory::HostMemory> all;
    for (uint32_t r = 0; r < numRanks(); ++r)
      all.push_back({blocks[r].get(), pages[r]});
    return all;
  }
  DeviceCard &card(uint32_t rank) { return blocks[rank]->card; }

private:
  std::vector<std::unique_ptr<ControlBlock>> blocks;
  std::vector<std::vector<std::byte>> pages;
};

} // namespace occl::cuda::testing
