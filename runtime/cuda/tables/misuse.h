// How kernels tell the host what a program's kernels have misused.
#pragma once

#include "runtime/api/occl_device_parts.cuh"
#include "runtime/cuda/tables/host_words.h"
#include "runtime/cuda/tables/replay_word.h"

#include <cstdint>

namespace occl::cuda {

/// Of a request whose misuse is not 0. serial: of the request, for the text.
OCCL_DEVICE_FUNCTION GivingUp givingUpFor(const occl::device::detail::State &state, uint32_t place,
                                          uint32_t serial) {
  using namespace occl::device::detail;
  // One word holds the kind, the thread block and the partition.
  const uint64_t misuse = loadWord(&state.misuse);
  GivingUp where;
  where.place = place;
  where.invocation = loadWord(&state.epoch);
  where.context.instruction = serial;
  where.context.tile = static_cast<uint32_t>(misuse >> (kMisusePartitionBits + kMisuseBlockBits));
  where.obstacle = {interpreter::BlockReason::Announce, kMisusedPart,
                    static_cast<uint32_t>(misuse)};
  where.block =
      static_cast<uint32_t>(misuse >> kMisusePartitionBits) & ((1u << kMisuseBlockBits) - 1);
  where.isBeginning = 1;
  return where;
}

} // namespace occl::cuda
