// What the interpreter executes: plain structures that host threads and CUDA thread blocks read
// alike (pointers and integers only).
//
//   Program       the bound plan of one rank: what does not change from one invocation of a
//                 registered collective to the next. Made by bind.h, immutable, shared by all
//                 threads and invocations.
//   Invocation    one run of a program: the user's buffers, scratch, arenas, progress words.
//   BlockContext  where one thread block of an invocation stands: all that preemption saves.
//
// Tiles. Every chunk is cut into tiles of `tileElements`; a thread block executes all its
// instructions on tile 0, then all on tile 1, and so on. A message is one connection operand of one
// instruction on one tile: the chunks' pieces of that tile, packed one after another. It is sent in
// at most `slicesPerMessage` slices. How many elements a slice holds depends on the instruction's
// chunk count only, so sender and receivers cut alike.
//
// Counters. Message M = tile * messagesPerTile + message of a connection has the slots
// (M mod depth) * slicesPerMessage + slice. Its slice s is sent when the connection's tail reaches
// M * slicesPerMessage + s + 1, and consumed by a destination when that destination's head does.
// Whoever handles the last slice of a message sets the counter to (M + 1) * slicesPerMessage,
// however few slices there were; an empty message has one slice. All counters start at 0 in each
// invocation. A signal is an empty message of a connection without slots and heads, and a wait for
// the v-th signal polls for message v - 1 of a tile, receiving nothing.
//
// Lines. With the protocols LL and LL128 a slot is a row of lines, each of data and a flag that
// come together, and there is no tail: a slice is there when the flags of all its lines are what
// the tail would be, plus Invocation::flagBase. Memory of lines holds nothing else.
//
// References. Instead of data a slot of protocol Simple may stand for the place in the sender's
// buffer where the data lies; it is the sender's choice, slice by slice. Beside the tail lies a
// word for each slot: 0, or where. The sender keeps the place as it is until all its heads have
// reached the tail, and its thread block does not finish before that. If its rank fails, nothing is
// kept: a receiver that finds the failure after it has read publishes nothing of it.
#pragma once

#include "plan/model/chunking.h"
#include "plan/model/plan.h"
#include "runtime/base/data_type.h"

#include <cstdint>

namespace occl {
struct Doorbell;
}

namespace occl::interpreter {

/// Where memory that a step uses begins: an index of Invocation::places. The first three are this
/// rank's buffers, by OperandKind.
using Place = uint32_t;
inline constexpr Place kProgressPlace = 3;
OCCL_HOST_DEVICE constexpr Place arenaPlace(uint32_t rank) { return kProgressPlace + 1 + rank; }
OCCL_HOST_DEVICE constexpr Place peerBufferPlace(uint32_t numRanks, uint32_t rank, uint32_t kind) {
  return arenaPlace(numRanks) + rank * 3 + kind;
}
/// With or without places of other ranks' buffers.
OCCL_HOST_DEVICE constexpr uint32_t numPlaces(uint32_t numRanks, bool withPeerBuffers) {
  return arenaPlace(numRanks) + (withPeerBuffers ? numRanks * 3 : 0);
}

/// A source or destination of an instruction.
struct BoundOperand {
  /// Bytes from the place to the first chunk, or to the connection's slots.
  uint64_t offset = 0;
  /// Connection: 0 for a signal's.
  uint64_t slotBytes = 0;
  Place place = 0;
  plan::OperandKind kind = plan::OperandKind::Input;
  /// Local: whose buffer it is.
  uint32_t rank = 0;
  /// Connection: which of the program's ends, and the message's number within a tile.
  uint32_t end = 0;
  uint32_t message = 0;
  uint32_t messagesPerTile = 0;
  /// Connection: its slots may refer to the sender's buffer.
  bool mayRefer = false;
};

enum class BlockReason : uint8_t {
  None,
  Announce,   // rank `peer` has not announced this invocation, or not begun it
  Data,       // the next slice of connection `what` from rank `peer`
  Credit,     // a free slot of connection `what`: its destination `peer` lags behind
  Dependency, // thread block `what` of this rank
  Signal,     // of counter `what`, by rank `peer`
};

/// A control word that a step waits for, and what to report while it does. The value is a multiple
/// of the tile's number, plus the slices of the message done with this one unless it is not sliced;
/// there is nothing to wait for if it is not positive.
struct BoundAcquire {
  uint64_t offset = 0; // from the place
  int64_t value = 0;   // on tile 0
  int64_t perTile = 0;
  Place place = 0;
  uint32_t what = 0;
  uint32_t peer = 0;
  BlockReason reason = BlockReason::None;
  bool isSliced = true;
};

/// A control word that a step stores: as BoundAcquire.
struct BoundRelease {
  uint64_t offset = 0;
  uint64_t value = 0;
  uint64_t perTile = 0;
  /// Nobody looks at a larger value, so it is not stored.
  uint64_t limit = ~0ull;
  Place place = 0;
  /// In Program::operands: what is sent or was received.
  uint32_t operand = 0;
  /// In Program::peers: the ranks that may sleep until then.
  uint32_t firstPeer = 0;
  uint16_t numPeers = 0;
  /// False for lines, which show by themselves that they are there.
  bool isStored = true;
  /// A slot may refer to the sender's buffer.
  bool mayRefer = false;
};

/// A place of another rank that must be known before the step; all that its acquires do not name.
struct BoundNeed {
  Place place = 0;
  uint32_t connection = 0;
  uint32_t peer = 0;
};

/// That are executed as one step.
inline constexpr uint32_t kMaxStepInstructions = 64;

struct BoundInstruction {
  /// Elements of all its chunks together over all tiles.
  uint64_t elements = 0;
  /// Elements of a tile, where the range is contiguous in all operands: see `contiguous`.
  uint64_t span = 0;
  /// Elements that a slice holds, at least 1.
  uint64_t sliceElements = 1;
  uint32_t firstOperand = 0; // the sources, then the destinations
  uint32_t firstAcquire = 0;
  uint32_t firstRelease = 0;
  uint32_t firstNeed = 0;
  uint32_t count = 0;  // chunks; 0 for signals and waits
  uint32_t extent = 0; // the first chunk's number in its part
  uint16_t numSources = 0;
  uint16_t numDestinations = 0;
  /// Of the step that begins here: of all its instructions.
  uint16_t numAcquires = 0;
  uint16_t numReleases = 0;
  uint16_t numNeeds = 0;
  uint16_t numStepOperands = 0;
  bool movesData = false;
  /// Instructions, from this one on, that are one step; 0: the step began before. One slice each if
  /// it is more than one.
  uint16_t numInstructions = 1;
  /// One chunk, or one tile with the chunks side by side in every operand.
  bool contiguous = true;
  /// Divides by the number of ranks before it stores.
  bool divides = false;
  /// Some block depends on it: its completion is published.
  bool published = false;
  /// What its receivers may be referred to: 1 + the position of the operand, or 0.
  uint16_t refers = 0;
  /// Its destinations that are not connections; they come first.
  uint16_t numLocalDestinations = 0;
  /// All that receive what it sends copy it and do nothing else.
  bool copyReceivers = false;
  /// Also in place: nothing else is stored where it lies.
  bool refersInPlace = false;
  /// Some source may lie in a buffer of another rank.
  bool readsPeers = false;
};

struct BoundBlock {
  uint32_t firstInstruction = 0;
  uint32_t numInstructions = 0;
  /// In Program::drains: sending ends whose messages must be consumed before it is finished.
  uint32_t firstDrain = 0;
  uint32_t numDrains = 0;
};

/// Where the slots and the tail of a connection lie. Heads always lie with the source's arena
/// block: in it, or as far behind its begin as BindRequest::headsDistance says.
enum class Placement : uint8_t {
  /// Once, in the source's block: the destinations read them there. One store however many
  /// destinations; the source needs nothing from them before it sends.
  AtSource,
  /// In the block of each destination: the source stores a copy to each, and all polling is of own
  /// memory. For devices whose stores to peers are cheaper than their loads. The source cannot send
  /// before a destination has announced its block.
  AtDestination,
};

/// The sending or a receiving end of a connection. Control words lie on cache lines of their own:
/// the tail (written by the source) beside the slots, and one head for each destination (written by
/// it) with the source's arena block. AtDestination, the sending side has an end for each
/// destination.
struct ConnectionEnd {
  uint64_t tailOffset = 0;
  /// A sending end: the first of its peers' heads, at multiples of kControlStride. A receiving end:
  /// its own. There are none if lastCredit is 0.
  uint64_t headsOffset = 0;
  uint64_t slotsOffset = 0;
  uint64_t slotBytes = 0;
  /// Heads up to here are waited for by the source at some time; larger ones are never looked at
  /// and so never stored.
  uint64_t lastCredit = 0;
  uint32_t messagesPerTile = 0;
  uint32_t dataRank = 0;   // the rank whose arena block has the tail and the slots
  uint32_t creditRank = 0; // the rank whose arena block has the heads: the source
  /// The other ranks, in Program::peers: the destinations, or the source alone.
  uint32_t firstPeer = 0;
  uint32_t numPeers = 0;
  uint32_t connection = 0; // in Plan::connections, for reports
  /// It carries signals, which need no credit.
  bool isCounter = false;
  /// Its slots may refer to the sender's buffers.
  bool mayRefer = false;
};

/// A place in a buffer of another rank: with kMappedReference an offset in that rank's memory as
/// this one maps it (PeerMemory), else an address of the other process.
using Reference = uint64_t;
inline constexpr Reference kMappedReference = 1ull << 63;
/// Slots that a connection with references can have.
inline constexpr uint64_t kMaxReferences = 7;

/// Bytes between control words.
inline constexpr uint64_t kControlStride = 64;

/// A line of protocol LL or LL128: data, and in the last bytes the flag.
struct LineFormat {
  uint32_t bytes = 0; // 0: protocol Simple
  uint32_t dataBytes = 0;
};
/// Of protocol LL: 4 bytes of data and the low half of the flag, stored as one word.
inline constexpr uint32_t kWordLineBytes = 8;

/// What a device target executes: programs without lines, or those with lines.
enum class Protocols : uint8_t { Simple, Lines };

/// Of an operand's slice of the stage, and the smallest one: any element, and vectors.
inline constexpr uint64_t kStageAlignment = 16;

/// How protocols LL and LL128 cut messages. All ranks must use the same.
struct LinePolicy {
  uint32_t wideLineBytes = 64; // of LL128; the last 8 are the flag
  uint32_t sliceBytes = 896;   // of data, at most; a multiple of 16
  /// Every operand of an instruction takes a slice of it, but of at least kStageAlignment bytes: a
  /// target has room for that many of the most operands, too.
  uint32_t stageBytes = 32 << 10;
  /// Else programs of LL128 have the lines of LL: other packets of the same messages.
  bool hasWide = true;
};
/// A slice is what the threads of a block hold in registers, and no staging area bounds it.
inline constexpr LinePolicy kDeviceLines = {128, 3840, 1 << 30};

struct Program {
  const BoundBlock *blocks = nullptr;
  const BoundInstruction *instructions = nullptr;
  const BoundOperand *operands = nullptr;
  const BoundAcquire *acquires = nullptr;
  const BoundRelease *releases = nullptr;
  const BoundNeed *needs = nullptr;
  const ConnectionEnd *ends = nullptr;
  const uint32_t *peers = nullptr;
  const uint32_t *drains = nullptr; // in `ends`
  /// [k] for k in [0, partChunks]: first element of chunk k of a part.
  const uint64_t *chunkBegins = nullptr;

  uint64_t partChunks = 1;
  uint64_t tileElements = 1;
  uint64_t numTiles = 1; // at least 1, also with no element at all
  /// Elements from a scratch slot to the next.
  uint64_t scratchStride = 0;
  uint64_t elementBytes = 1;
  /// A power of two, at least the plan's.
  uint64_t depth = 1;
  uint64_t slicesPerMessage = 1;
  LineFormat line;
  /// Lines: bytes from one operand's staging area to the next.
  uint64_t stageStride = 0;
  /// Lines: more than the flags of an invocation differ by; the same on all ranks.
  uint64_t flagsPerInvocation = 0;
  uint32_t numBlocks = 0;
  uint32_t rank = 0;
  uint32_t numRanks = 1;
  /// Operands of the largest instruction that moves data.
  uint32_t maxOperands = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
};

struct PeerMemory;

struct Invocation {
  const Program *program = nullptr;
  /// Where memory lies; numPlaces() of them. Those of own memory are set before a thread block
  /// runs.
  /// - Input, output and scratch. Any alignment. Nothing is written to the input unless it is also
  ///   the output (in place).
  /// - Progress words, one a thread block, kControlStride apart, 0 at the start: tile *
  ///   instructions of the block + instruction + 1 of the last published completion.
  /// - Rank r's arena block for this invocation where this rank maps it; null until r has announced
  ///   it (begun it, if its buffers are accessed). May be set, once, while thread blocks run (with
  ///   release).
  /// - If the program has direct access: rank r's buffers where this rank maps them, set before
  ///   the place of r's arena block is.
  char **places = nullptr;
  /// Input and output as receivers may refer to them, or 0.
  Reference references[2] = {0, 0};
  /// The input overlaps the output.
  bool inPlace = false;
  /// Host: [r]: how to access what rank r refers to.
  const PeerMemory *peerMemory = nullptr;
  /// What is added to the value of every tail, head, signal and progress word that is stored or
  /// waited for: no such word of the arena blocks is larger at the start. 0 for blocks whose words
  /// are zero; the same on all ranks. All that exchange something with a rank must have finished
  /// earlier invocations with these blocks before it stores anything. Only programs without
  /// references can go on from words that are not zero.
  uint64_t wordBase = 0;
  /// Lines: no line of the arena blocks has a flag in (flagBase, flagBase + flagsPerInvocation) at
  /// the start. 0 for blocks whose lines are zero; the same on all ranks.
  uint64_t flagBase = 0;
  /// Host: [r]: rank r's doorbell, or null if nobody sleeps on it. Null if there are none at all.
  Doorbell *const *doorbells = nullptr;
};

/// The slice to do next. A fresh one starts a thread block.
struct alignas(16) BlockContext {
  uint64_t tile = 0;
  uint32_t instruction = 0; // in its thread block
  uint32_t slice = 0;

  bool operator==(const BlockContext &) const = default;
};

} // namespace occl::interpreter
