// An instruction of the inst dialect as plain data: what a rank's op has a list of (Step.h),
// and what the passes work on.
#pragma once

#include "plan/model/plan.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace occl::inst {

/// Input, Output and Scratch are buffers, of the executing rank or of a peer. A Transfer is a
/// message before connections are assigned: an identifier that its sending instruction and its
/// receiving ones share, one on each destination rank. A Connection is a FIFO; its messages are
/// those of the instructions that use it, in their order. Or it is a counter, of signals and waits.
enum class PlaceKind : uint8_t { Input, Output, Scratch, Transfer, Connection };

/// A source or destination of an instruction.
struct Place {
  PlaceKind kind = PlaceKind::Input;
  /// Transfers: the channel asked for. Buffers: the rank whose buffer it is, if not the executing
  /// one's (load_reduce_store only). -1: none.
  int16_t channel = -1;
  /// The first chunk, the transfer's identifier, or the connection's index in the program.
  uint32_t index = 0;

  /// A buffer, also a peer's.
  bool isLocal() const { return kind <= PlaceKind::Scratch; }
  bool isPeer() const { return isLocal() && channel >= 0; }
  /// The rank whose buffer it is, for an instruction of rank `executing`.
  uint32_t owner(uint32_t executing) const {
    return isPeer() ? static_cast<uint32_t>(channel) : executing;
  }
  bool operator==(const Place &) const = default;
};

using Places = llvm::SmallVector<Place, 2>;

/// Reduces its sources from left to right and stores the result in all its destinations; `count`
/// chunks, of which the first is chunk `extent` of a part. A signal has no sources, a wait no
/// destinations, and its `count` is the number of signals that it waits for.
struct Instruction {
  Places sources;
  Places destinations;
  uint32_t count = 1;
  uint32_t extent = 0;
  /// -1: not assigned. Before inst-assign-thread-blocks, the one that the source asks for.
  int32_t threadBlock = -1;
  /// Messages of one group that are neighbours are meant to be one message; -1: of no group.
  int32_t group = -1;
  bool final = false;

  bool operator==(const Instruction &) const = default;

  bool isControl() const { return sources.empty() || destinations.empty(); }

  /// Its one destination on the own rank, or null.
  const Place *localDestination() const {
    for (const Place &place : destinations)
      if (place.isLocal() && !place.isPeer())
        return &place;
    return nullptr;
  }
};

/// Whether one instruction can do the work of both as far as their thread blocks are concerned.
inline bool agreeOnBlock(const Instruction &a, const Instruction &b) {
  return a.threadBlock == b.threadBlock || a.threadBlock < 0 || b.threadBlock < 0;
}

/// `into` takes over what `other`, with which it agrees, asks for and it does not.
inline void joinHints(Instruction &into, const Instruction &other) {
  if (into.threadBlock < 0)
    into.threadBlock = other.threadBlock;
  if (into.group < 0)
    into.group = other.group;
}

/// The opcode of an instruction with these operands.
plan::Opcode opcodeOf(const Instruction &instruction);

/// Whether the operands have the shape that `opcode` asks for.
bool hasShapeOf(plan::Opcode opcode, const Instruction &instruction);

} // namespace occl::inst
