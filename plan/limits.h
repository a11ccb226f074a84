// The limits of a plan. One place: the compiler refuses to emit more, the reader and verifier refuse to accept more,
// `occlc limits` prints them. They bound memory before anything is allocated from an untrusted file.
#pragma once

#include <cstdint>

namespace occl::plan::limits {

inline constexpr uint32_t kMaxRanks = 4096;
inline constexpr uint32_t kMaxChunks = 1u << 22;            // a rank's input, output or scratch
inline constexpr uint32_t kMaxThreadBlocks = 1024;          // a rank's
inline constexpr uint32_t kMaxInstructions = 1u << 26;      // a plan's
inline constexpr uint32_t kMaxOperands = 1u << 12;          // an instruction's sources plus destinations
inline constexpr uint32_t kMaxDependencies = 1u << 10;      // an instruction's
inline constexpr uint32_t kMaxConnections = 1u << 24;       // a plan's
inline constexpr uint32_t kMaxChannels = 1u << 12;
inline constexpr uint32_t kMaxDepth = 64;                   // messages in flight on a connection
inline constexpr uint32_t kMaxNameLength = 1024;            // bytes of any name or path in a plan

} // namespace occl::plan::limits
