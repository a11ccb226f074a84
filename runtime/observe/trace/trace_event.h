// What a trace records: one event, as the words that a ring keeps.
#pragma once

#include "runtime/base/tick_clock.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace occl::insight {

enum class TraceKind : uint8_t {
  // Spans.
  Run,      // slices of one instruction of a thread block; detail: tile, slice
  Wait,     // of a thread block, for `peer`, for `reason`
  Visit,    // by an executor; detail: position in the queue, its length
  Callback, // the user's, by whatever thread
  // Moments.
  Submit,
  Announced, // by all ranks that this one needs
  Start,     // its thread blocks are in the task queue; detail: length of the queue
  Preempt,   // a thread block; detail: position in the queue, its length
  Finish,    // all thread blocks on this rank
  Complete,  // its result is visible; detail: result
  Mark,      // of a partitioned request, by the program; detail: first partition, how many
};

/// Numbers of executors from here on are those of devices.
inline constexpr uint16_t kFirstDeviceExecutor = 1u << 15;
inline constexpr uint16_t kExecutorsOfDaemon = 64;
/// `daemon`: a device has several, for different kernels.
constexpr uint16_t deviceExecutor(uint32_t daemon, uint32_t executor) {
  return static_cast<uint16_t>(kFirstDeviceExecutor + daemon * kExecutorsOfDaemon + executor);
}

/// Meaning of the numbers by kind, 0 where a kind has none.
struct TraceEvent {
  TraceKind kind = TraceKind::Run;
  uint8_t reason = 0;    // a WaitReason
  uint16_t executor = 0; // set by who reads a ring: the ring's number
  uint32_t block = 0;
  Ticks begin = 0, end = 0; // equal for moments
  uint64_t collective = 0, ordinal = 0;
  uint32_t instruction = 0; // position in the block
  uint32_t peer = 0;
  std::array<uint64_t, 2> detail{}; // less than 2^56

  bool operator==(const TraceEvent &) const = default;
};

/// 64 bytes: a cache line.
using TraceWords = std::array<uint64_t, 8>;

/// `session` tells communicators apart.
inline TraceWords encode(const TraceEvent &event, uint32_t session) {
  return {event.begin,
          event.end,
          event.collective,
          event.ordinal,
          uint64_t{session} << 32 | event.block,
          uint64_t{event.instruction} << 32 | event.peer,
          event.detail[0] << 8 | static_cast<uint64_t>(event.kind),
          event.detail[1] << 8 | event.reason};
}

inline uint32_t sessionOf(const TraceWords &words) { return static_cast<uint32_t>(words[4] >> 32); }

inline TraceEvent decode(const TraceWords &words) {
  TraceEvent event;
  event.kind = static_cast<TraceKind>(words[6] & 0xff);
  event.reason = static_cast<uint8_t>(words[7]);
  event.block = static_cast<uint32_t>(words[4]);
  event.begin = words[0];
  event.end = words[1];
  event.collective = words[2];
  event.ordinal = words[3];
  event.instruction = static_cast<uint32_t>(words[5] >> 32);
  event.peer = static_cast<uint32_t>(words[5]);
  event.detail = {words[6] >> 8, words[7] >> 8};
  return event;
}

} // namespace occl::insight
