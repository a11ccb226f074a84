// The limits of a plan. One place: the compiler refuses to emit more, the reader and verifier
// refuse to accept more, `occlc limits` prints them. They bound memory before anything is allocated
// from an untrusted file.
#pragma once

#include <cstdint>

namespace occl::plan::limits {

inline constexpr uint32_t kMaxRanks = 4096;
inline constexpr uint32_t kMaxChunks = 1u << 22;       // a rank's input, output or scratch
inline constexpr uint32_t kMaxThreadBlocks = 1024;     // a rank's
inline constexpr uint32_t kMaxInstructions = 1u << 26; // a plan's
inline constexpr uint32_t kMaxOperands = 1u << 12;     // an instruction's sources plus destinations
inline constexpr uint32_t kMaxDependencies = 1u << 10; // an instruction's
inline constexpr uint32_t kMaxConnections = 1u << 24;  // a plan's
inline constexpr uint32_t kMaxChannels = 1u << 12;
inline constexpr uint32_t kMaxDepth = 64;        // messages in flight on a connection
inline constexpr uint32_t kMaxNameLength = 1024; // bytes of any name or path in a plan
inline constexpr uint32_t kMaxParameters = 1u << 10;
inline constexpr uint32_t kMaxFiles = 1u << 16;
inline constexpr uint32_t kMaxLocations = 1u << 26;
inline constexpr uint32_t kMaxRequirements = 1u << 24;

// Totals over a plan.
inline constexpr uint32_t kMaxTotalOperands = 1u << 28;
inline constexpr uint32_t kMaxTotalDependencies = 1u << 28;
inline constexpr uint32_t kMaxTotalDestinations = 1u << 28; // of connections
inline constexpr uint32_t kMaxTotalContributions = 1u << 26;
inline constexpr uint32_t kMaxWitnesses = 1u << 24;
inline constexpr uint32_t kMaxTotalPlaces = 1u << 26; // of witnesses
inline constexpr uint32_t kMaxTotalThreadBlocks = 1u << 22;
inline constexpr uint32_t kMaxTotalChunks = 1u << 26; // of all buffers of all ranks
inline constexpr uint64_t kMaxChunkAccesses =
    1ull << 27; // operands times count, summed; likewise of requirements
inline constexpr uint64_t kMaxFileBytes = 1ull << 33;

} // namespace occl::plan::limits
