#include "runtime/cuda/resident/testing/one_device.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/tables/block_images.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace occl::cuda::resident {

using namespace interpreter;

namespace {

constexpr uint64_t kArenaBytes = 1 << 30;
/// Larger collectives have one arena block.
constexpr uint64_t kLargeBytes = 300 << 10;

void require(cudaError_t error, const char *what) {
  Status status = toStatus(error, what);
  if (status.ok())
    return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

/// Small numbers, so that sums are exact in any order.
float inputOf(uint32_t phase, uint32_t collective, uint32_t rank, uint64_t element) {
  return static_cast<float>((phase + 3 * collective + 7 * rank + element) % 101);
}

} // namespace

DevicePiece::DevicePiece(uint64_t bytes) {
  void *begin = nullptr;
  require(cudaMalloc(&begin, bytes), "cudaMalloc");
  require(cudaMemset(begin, 0, bytes), "cudaMemset");
  memory = static_cast<char *>(begin);
}

DevicePiece::~DevicePiece() { cudaFree(memory); }

OneDevice::OneDevice(uint32_t numRanks, const DaemonOptions &options) : usedOfArena(numRanks) {
  for (uint32_t r = 0; r < numRanks; ++r) {
    arenas.push_back(take(kArenaBytes));
    usedOfArena[r] = kRecordBytes;
    auto daemon = ResidentDaemon::make(options);
    if (!daemon.ok()) {
      std::fprintf(stderr, "%s\n", daemon.status().message().c_str());
      std::exit(1);
    }
    daemons.push_back(std::move(*daemon));
    tenants.push_back(std::make_unique<TestTenant>());
    if (Status attached = daemons.back()->attach(*tenants.back()); !attached.ok()) {
      std::fprintf(stderr, "%s\n", attached.message().c_str());
      std::exit(1);
    }
  }
}

OneDevice::~OneDevice() {
  for (uint32_t r = 0; r < numRanks(); ++r)
    daemons[r]->detach(*tenants[r]);
}

char *OneDevice::take(uint64_t bytes) {
  pieces.push_back(std::make_unique<DevicePiece>(std::max<uint64_t>(bytes, 1)));
  return pieces.back()->begin();
}

Status OneDevice::add(const plan::Plan &plan, uint64_t count) {
  Collective collective;
  collective.count = count;
  for (uint32_t r = 0; r < numRanks(); ++r) {
    auto binding = bind(plan, {.rank = r,
                               .count = count,
                               .tiles = {4 << 20, 1},
                               .placement = Placement::AtDestination,
                               .lines = kDeviceLines,
                               .stepOperands = kMaxStepOperands});
    if (!binding.ok())
      return binding.status();
    Rank rank;
    rank.binding = *binding;
    rank.input = take(count * sizeof(float));
    rank.output = take(count * sizeof(float));
    collective.ranks.push_back(rank);
  }
  layOut(collective, plan, numCollectives());
  for (uint32_t r = 0; r < numRanks(); ++r) {
    const DeviceCollective &device = collective.ranks[r].device;
    auto *counts = reinterpret_cast<BlockCounts *>(take(device.numBlocks * sizeof(BlockCounts)));
    auto number = daemons[r]->add(*tenants[r], device, {.counts = counts});
    if (!number.ok())
      return number.status();
    collective.ranks[r].number = *number;
  }
  collectives.push_back(std::move(collective));
  return {};
}

void OneDevice::layOut(Collective &collective, const plan::Plan &plan, uint32_t slot) {
  std::vector<uint64_t> where;
  for (uint32_t r = 0; r < numRanks(); ++r) {
    Rank &rank = collective.ranks[r];
    const Binding &binding = *rank.binding;
    DeviceCollective &device = rank.device;
    device.slot = slot;
    device.rank = r;
    device.numRanks = numRanks();
    device.numBlocks = binding.program().numBlocks;
    device.hasLines = binding.program().line.bytes != 0;
    device.folds = Folds::FloatSum;
    device.ring = collective.count * sizeof(float) > kLargeBytes ? 1 : kMaxRing;
    device.lead = device.ring;
    // Blocks are as far apart as the largest ones of a rank are long.
    for (uint32_t peer = 0; peer < numRanks(); ++peer) {
      device.arenas[peer] = arenas[peer];
      device.ringStride = std::max<uint64_t>(
          device.ringStride,
          alignUp(binding.arenaBytes(peer) + plan.ranks[peer].numThreadBlocks * kControlStride,
                  kBlockAlignment));
    }
    device.linesStride = device.ringStride;
    std::ranges::fill(device.scratchOffsets, device.ring * device.ringStride);
    device.progressOffset = binding.arenaBytes(r);
    device.ordinals = reinterpret_cast<uint64_t *>(take(device.numBlocks * sizeof(uint64_t)));
    where.push_back(usedOfArena[r] + 1);
    usedOfArena[r] += alignUp(device.scratchOffsets[r] + binding.scratchBytes(), kBlockAlignment);
    if (usedOfArena[r] > kArenaBytes)
      require(cudaErrorMemoryAllocation, "taking memory of the arena");
    const BlockImages images = makeBlockImages(binding.program());
    device.imageStride = static_cast<uint32_t>(images.stride);
    std::vector<char> bytes(images.bytes());
    images.writeTo(bytes.data());
    char *memory = take(bytes.size());
    device.images = memory;
    require(cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  for (uint32_t reader = 0; reader < numRanks(); ++reader)
    for (uint32_t writer = 0; writer < numRanks(); ++writer)
      require(cudaMemcpy(&recordIn(arenas[reader], slot, writer)->where, &where[writer],
                         sizeof(uint64_t), cudaMemcpyHostToDevice),
              "cudaMemcpy");
}

void OneDevice::setInputs(uint32_t phase) {
  for (uint32_t c = 0; c < numCollectives(); ++c)
    for (uint32_t r = 0; r < numRanks(); ++r) {
      std::vector<float> input(collectives[c].count);
      for (uint64_t e = 0; e < input.size(); ++e)
        input[e] = inputOf(phase, c, r, e);
      const Rank &rank = collectives[c].ranks[r];
      uint64_t bytes = input.size() * sizeof(float);
      require(cudaMemcpy(rank.input, input.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      require(cudaMemset(rank.output, 0xff, bytes), "cudaMemset");
    }
}

Status OneDevice::check(uint32_t phase) {
  for (uint32_t c = 0; c < numCollectives(); ++c)
    for (uint32_t r = 0; r < numRanks(); ++r) {
      std::vector<float> output(collectives[c].count);
      require(cudaMemcpy(output.data(), collectives[c].ranks[r].output,
                         output.size() * sizeof(float), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
      for (uint64_t e = 0; e < output.size(); ++e) {
        float expected = 0;
        for (uint32_t peer = 0; peer < numRanks(); ++peer)
          expected += inputOf(phase, c, peer, e);
        if (output[e] != expected)
          return {StatusCode::InternalError,
                  "element " + std::to_string(e) + " of collective " + std::to_string(c) +
                      " on rank " + std::to_string(r) + " is " + std::to_string(output[e]) +
                      ", not " + std::to_string(expected)};
      }
    }
  return {};
}

StatusOr<uint64_t> OneDevice::submit(uint32_t rank, uint32_t collective, uint8_t priority,
                                     ResidentDaemon::Callback callback) {
  Rank &where = collectives[collective].ranks[rank];
  for (;;) {
    auto request = daemons[rank]->enter({.collective = where.number,
                                         .ordinal = where.submitted,
                                         .tag = collective,
                                         .input = where.input,
                                         .output = where.output,
                                         .priority = priority,
                                         .timeout = timeout},
                                        callback);
    daemons[rank]->begin();
    where.submitted += request.ok();
    if (request.ok() || request.status().code() != StatusCode::Again)
      return request;
    yieldProcessor();
  }
}

} // namespace occl::cuda::resident
