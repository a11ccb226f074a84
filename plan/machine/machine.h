// The abstract machine that programs of messages are executed on, without data: how far each block
// has come, how many messages each connection has carried. What blocks and instructions are the
// program says: a plan's thread blocks, or a rank's steps one after another. Drivers (drivers.h)
// choose whose turn it is.
//
// An instruction that can run stays able to until it does, as it alone takes from its connections
// and all counts only grow. So the order of turns decides nothing about whether a program ends.
#pragma once

#include <cstdint>
#include <vector>

namespace occl::plan::machine {

inline constexpr uint32_t kNone = ~0u;

/// A depth at which there is always room.
inline constexpr uint32_t kUnbounded = ~0u;

/// A part of an instruction: that waits for another one, that takes a message or signal from a
/// connection, or gives one to it. A message needs room there, a signal none. Idle parts, as those
/// that touch memory alone, are always ready.
struct Part {
  enum class Kind : uint8_t { Idle, Dependency, Receive, Send, Signal };
  Kind kind = Kind::Idle;
  uint32_t connection = 0;
  uint32_t block = 0, position = 0; // of the instruction that a dependency is on
};

/// What an instruction lacks.
enum class Need : uint8_t { Nothing, Dependency, Message, Room };

/// Why a block cannot run its next instruction; Nothing if it can.
struct Wait {
  Need need = Need::Nothing;
  uint32_t connection = 0;
  uint32_t end = 0;                 // of the connection: that receives, or has received too little
  uint32_t number = 0;              // of the message that has to be there, or to have been received
  uint32_t block = 0, position = 0; // of the instruction that a dependency is on
};

/// Messages that connections have carried, by connection and by receiving end.
struct Counts {
  std::vector<uint32_t> sent, received;
};

/// A Program has
///   numBlocks(), numConnections(), numEnds();
///   numInstructions(block), numParts(block, position), part(block, position, i);
///   numberOf(counts, block, position, i): which message of its connection, from 0, a part is for
///     that receives or sends; all before it belong to earlier instructions, or parts, of the
///     block;
///   endOf(connection, block): the receiving end at a block that receives;
///   firstEnd(connection), numEndsOf(connection): all receiving ends;
///   senderOf(connection), receiverOf(end): the block there, or kNone if none has to wait there.
/// It outlives the machine and does not change meanwhile. Depths are at least 1.
template <class Program> class Machine {
public:
  Machine(const Program &program, uint32_t depth)
      : program(program), depth(depth), blocks(program.numBlocks()) {
    counts.sent.resize(program.numConnections());
    counts.received.resize(program.numEnds());
  }

  uint32_t numBlocks() const { return static_cast<uint32_t>(blocks.size()); }
  /// The position of the instruction that the block runs next.
  uint32_t next(uint32_t block) const { return blocks[block].next; }
  bool isDone(uint32_t block) const { return next(block) == program.numInstructions(block); }

  /// What the next instruction of a block that is not done waits for first.
  Wait look(uint32_t block) {
    Block &state = blocks[block];
    for (const uint32_t parts = program.numParts(block, state.next); state.part < parts;
         ++state.part) {
      const Wait wait = lookAt(block, program.part(block, state.next, state.part));
      if (wait.need != Need::Nothing)
        return wait;
      state.end = 0;
    }
    return {};
  }

  /// Whether what was waited for is there.
  bool holds(const Wait &wait) const {
    switch (wait.need) {
    case Need::Nothing:
      return true;
    case Need::Dependency:
      return blocks[wait.block].next > wait.position;
    case Need::Message:
      return counts.sent[wait.connection] > wait.number;
    case Need::Room:
      return counts.received[wait.end] > wait.number;
    }
    return false;
  }

  /// The block that alone can end the wait; kNone if there is none.
  uint32_t blockThatEnds(const Wait &wait) const {
    if (wait.need == Need::Dependency)
      return wait.block;
    return wait.need == Need::Room ? program.receiverOf(wait.end)
                                   : program.senderOf(wait.connection);
  }

  /// Runs the block's next instruction, for which look() found nothing to wait for. Calls
  /// moved(other, need, end) for each block at the other end of a message, with what it may have
  /// waited for there.
  template <class Moved> void run(uint32_t block, Moved moved) {
    Block &state = blocks[block];
    const uint32_t parts = program.numParts(block, state.next);
    for (uint32_t i = 0; i < parts; ++i) {
      const Part part = program.part(block, state.next, i);
      if (part.kind == Part::Kind::Receive) {
        const uint32_t end = program.endOf(part.connection, block);
        ++counts.received[end];
        tell(program.senderOf(part.connection), Need::Room, end, moved);
      } else if (part.kind == Part::Kind::Send || part.kind == Part::Kind::Signal) {
        ++counts.sent[part.connection];
        const uint32_t first = program.firstEnd(part.connection);
        for (uint32_t end = first; end < first + program.numEndsOf(part.connection); ++end)
          tell(program.receiverOf(end), Need::Message, end, moved);
      }
    }
    state = {.next = state.next + 1};
  }

private:
  struct Block {
    uint32_t next = 0;
    // Of the next instruction: the parts before this one are ready, and stay so; of this one, if it
    // sends, the receiving ends before this one have room.
    uint32_t part = 0, end = 0;
  };

  Wait lookAt(uint32_t block, const Part &part) {
    Block &state = blocks[block];
    switch (part.kind) {
    case Part::Kind::Idle:
    case Part::Kind::Signal:
      return {};
    case Part::Kind::Dependency:
      return unlessHolds(
          {.need = Need::Dependency, .block = part.block, .position = part.position});
    case Part::Kind::Receive:
      return unlessHolds({.need = Need::Message,
                          .connection = part.connection,
                          .end = program.endOf(part.connection, block),
                          .number = program.numberOf(counts, block, state.next, state.part)});
    case Part::Kind::Send:
      return lookForRoom(state, part.connection,
                         program.numberOf(counts, block, state.next, state.part));
    }
    return {};
  }

  /// A message occupies its slot until the slowest end has received it.
  Wait lookForRoom(Block &state, uint32_t connection, uint32_t number) {
    if (number < depth)
      return {};
    for (; state.end < program.numEndsOf(connection); ++state.end) {
      const Wait wait = unlessHolds({.need = Need::Room,
                                     .connection = connection,
                                     .end = program.firstEnd(connection) + state.end,
                                     .number = number - depth});
      if (wait.need != Need::Nothing)
        return wait;
    }
    return {};
  }

  Wait unlessHolds(const Wait &wait) const { return holds(wait) ? Wait() : wait; }

  template <class Moved>
  static void tell(uint32_t block, Need need, uint32_t end, const Moved &moved) {
    if (block != kNone)
      moved(block, need, end);
  }

  const Program &program;
  uint32_t depth;
  std::vector<Block> blocks;
  Counts counts;
};

} // namespace occl::plan::machine
