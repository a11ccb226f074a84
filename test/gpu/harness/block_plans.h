// Plans of a shape that the examples do not have: all-reduces of many thread blocks a rank, as the
// compiler makes them with --instances, and messages of several chunks.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>

namespace occl::gpu_test {

/// When a thread block adds: once it has sent, or also once the next one of its rank has.
enum class Adding { AtOnce, AfterNext };

/// Thread block b of every rank sends chunk b of its input to all others and adds all that it
/// receives.
plan::Plan oneShotInBlocks(uint32_t numRanks, uint32_t numBlocks, plan::Protocol protocol,
                           Adding adding = Adding::AtOnce);

/// Each thread block adds a chunk of all ranks where it lies, and stores it in all outputs.
plan::Plan directInBlocks(uint32_t numRanks, uint32_t numBlocks);

/// A chain in which each message has several chunks: on several tiles they do not lie side by side.
/// From the first rank to the last one.
plan::Plan chainOfPairs(uint32_t numRanks);

} // namespace occl::gpu_test
