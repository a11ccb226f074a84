// The plan: one collective, compiled, for all its ranks. It is the only thing that crosses from
// compiler to runtime.
//
// Plain data in flat arrays: instructions, operands, dependencies, connections and requirements of
// all ranks lie in one vector each and are referred to by index, so that a plan of a million
// instructions is a dozen allocations and can be copied to a GPU as it is. Build one with
// PlanBuilder (plan/model/builder.h); read and write it with plan/io/reader.h and plan/io/writer.h;
// trust it only after verifyPlan (plan/verify/verifier.h) has accepted it.
//
// Thread safety: a Plan is immutable once built; concurrent reads are safe.
#pragma once

#include "plan/model/opcode.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace occl::plan {

inline constexpr uint32_t kSchemaVersion = 1;

/// Where the data of an operand lies. Input, Output and Scratch are a rank's buffers, addressed in
/// chunks.
enum class OperandKind : uint8_t { Input, Output, Scratch, Connection };

/// A source or destination of an instruction.
struct Operand {
  OperandKind kind = OperandKind::Input;
  /// The rank whose buffer it is; equal to the executing rank except in loadReduceStore. 0 for
  /// connections.
  uint32_t rank = 0;
  /// The first chunk in the buffer, or the index in Plan::connections.
  uint32_t index = 0;

  bool operator==(const Operand &) const = default;
};

/// `instruction` of thread block `threadBlock` on the same rank must be complete, for the same
/// tile, first.
struct Dependency {
  uint32_t threadBlock = 0;
  uint32_t instruction = 0; // its position in the thread block, from 0

  bool operator==(const Dependency &) const = default;
};

/// One step of a thread block. It works on `count` chunks: every local operand is the range [index,
/// index + count).
struct Instruction {
  Opcode opcode = Opcode::Copy;
  /// Set on the reduction that completes its chunks: `average` divides here, once.
  bool final = false;
  uint16_t numSources = 0;
  uint16_t numDestinations = 0;
  uint16_t numDependencies = 0;
  /// Chunks moved; at least 1 for data instructions, 0 for signal and wait.
  uint32_t count = 0;
  /// Which chunk of a part (see Plan::partChunks) the first chunk is, and so how many elements it
  /// has. The chunks of an instruction are consecutive modulo partChunks.
  uint32_t extent = 0;
  uint32_t firstOperand = 0; // in Plan::operands: the sources, then the destinations
  uint32_t firstDependency = 0;
  /// wait: how many signals of the tile must have been given.
  uint32_t value = 0;
  /// Index in Plan::locations of the source line that it comes from, or kNoLocation.
  uint32_t location = ~0u;
};

inline constexpr uint32_t kNoLocation = ~0u;

/// An ordered list of instructions that one executor runs at a time: [firstInstruction, +
/// numInstructions).
struct ThreadBlock {
  uint32_t firstInstruction = 0;
  uint32_t numInstructions = 0;
};

/// What one rank has. Sizes in chunks.
struct RankPlan {
  uint32_t inputChunks = 0;
  uint32_t outputChunks = 0;
  uint32_t scratchChunks = 0;
  /// In place, input chunk i is output chunk i + inPlaceOffset where both exist.
  int32_t inPlaceOffset = 0;
  uint32_t firstThreadBlock = 0; // in Plan::threadBlocks
  uint32_t numThreadBlocks = 0;
};

/// A FIFO of messages from one rank to one or more others; every destination receives every
/// message, in order. The slots lie where the transport puts them, once for all destinations where
/// memory is shared.
///
/// Or a counter: it carries no data and has neither slots nor credits. `signal` increments it,
/// `wait` at a destination waits until it has been incremented so often within the tile.
struct Connection {
  uint32_t source = 0;
  uint32_t channel = 0;
  uint32_t firstDestination = 0; // in Plan::destinations: ascending ranks
  uint32_t numDestinations = 0;
  /// Receiving a message also makes everything visible, and complete, that was so for its sender
  /// when it sent: the transport fences each message on both sides. Not set, a message orders only
  /// the data that it carries. Only for Protocol::Simple.
  bool isOrdered = false;
  bool isCounter = false;
};

/// An instruction by its position: `threadBlock` counts within the rank, `instruction` within the
/// thread block.
struct Place {
  uint32_t rank = 0;
  uint32_t threadBlock = 0;
  uint32_t instruction = 0;

  bool operator==(const Place &) const = default;
};

/// Why an instruction needs no dependency on another one of its rank: the way of the order through
/// other ranks. The first place is the earlier instruction, the last one the later. Each place
/// follows the one before in its thread block, or depends on it, or receives what it sends on an
/// ordered connection. A help for the verifier, which checks it; nothing that a plan does.
struct Witness {
  uint32_t firstPlace = 0; // in Plan::places
  uint32_t numPlaces = 0;
};

/// Element `chunk` of rank `rank`'s input at entry.
struct Contribution {
  uint32_t rank = 0;
  uint32_t chunk = 0;

  bool operator==(const Contribution &) const = default;
};

/// For i in [0, count): rank's output[outputChunk + i] is at exit the reduction of input[chunk + i]
/// of the contributions. Only for collectives that verifyPlan does not know by name.
struct Requirement {
  uint32_t rank = 0;
  uint32_t outputChunk = 0;
  uint32_t count = 0;
  uint32_t firstContribution = 0; // in Plan::contributions
  uint32_t numContributions = 0;
};

/// A place in a source file. line and column count from 1.
struct Location {
  uint32_t file = 0; // in Plan::files
  uint32_t line = 0;
  uint32_t column = 0;
};

/// How a slice of a message becomes visible to its receiver.
enum class Protocol : uint8_t { Simple, LL, LL128 };

struct Plan {
  uint32_t schemaVersion = kSchemaVersion;
  std::string name;       // of the algorithm
  std::string collective; // "allreduce", ... or the name of the user's own
  /// Parameters of the algorithm as compiled, in order of declaration.
  std::vector<std::pair<std::string, int64_t>> parameters;
  /// Of the source text and the options: equal on all ranks of a communicator. 16 hexadecimal
  /// digits.
  std::string sourceHash;

  uint32_t numRanks = 0;
  /// A buffer consists of parts of `count` elements each (the count that the user passes), and a
  /// part of partChunks chunks. All-reduce: the buffer is one part; all-gather: the output has
  /// numRanks parts.
  uint32_t partChunks = 1;
  /// Rank that broadcast, reduce, gather and scatter start from or end at; 0 for the others.
  uint32_t root = 0;
  /// Alias modes that the plan is valid for.
  bool outOfPlace = true;
  bool inPlace = true;
  /// A value ends in a chunk of another size than its own unless all chunks are equal: the runtime
  /// then accepts only counts that partChunks divides.
  bool uniformChunks = false;
  /// False: nobody said what the collective promises (a plan of another tool, imported). Everything
  /// but the result is proved. Collectives that verifyPlan knows by name always promise something.
  bool hasPostcondition = true;
  /// False: a required result is reduced further on its way to others (a scan), so that no
  /// instruction completes it and none is marked final. The runtime then refuses to average.
  bool average = true;
  Protocol protocol = Protocol::Simple;
  /// K: messages that every connection holds. The plan is free of deadlock at this depth.
  uint32_t depth = 2;
  /// Sizes, in bytes of one part, that the plan is meant for: minBytes <= count * element size <=
  /// maxBytes.
  uint64_t minBytes = 0;
  uint64_t maxBytes = ~0ull;

  std::vector<RankPlan> ranks;
  std::vector<ThreadBlock> threadBlocks;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Dependency> dependencies;
  std::vector<Connection> connections;
  std::vector<uint32_t> destinations;
  std::vector<Requirement> requirements;
  std::vector<Contribution> contributions;
  std::vector<Witness> witnesses;
  std::vector<Place> places; // of witnesses
  std::vector<std::string> files;
  std::vector<Location> locations;

  // The functions below expect indices in range: of a verified plan, or of one that the caller
  // built.
  std::span<const ThreadBlock> threadBlocksOf(const RankPlan &rank) const {
    return std::span(threadBlocks).subspan(rank.firstThreadBlock, rank.numThreadBlocks);
  }
  std::span<const Instruction> instructionsOf(const ThreadBlock &block) const {
    return std::span(instructions).subspan(block.firstInstruction, block.numInstructions);
  }
  std::span<const Operand> sourcesOf(const Instruction &instruction) const {
    return std::span(operands).subspan(instruction.firstOperand, instruction.numSources);
  }
  std::span<const Operand> destinationsOf(const Instruction &instruction) const {
    return std::span(operands).subspan(instruction.firstOperand + instruction.numSources,
                                       instruction.numDestinations);
  }
  std::span<const Dependency> dependenciesOf(const Instruction &instruction) const {
    return std::span(dependencies)
        .subspan(instruction.firstDependency, instruction.numDependencies);
  }
  std::span<const uint32_t> destinationsOf(const Connection &connection) const {
    return std::span(destinations).subspan(connection.firstDestination, connection.numDestinations);
  }
  std::span<const Contribution> contributionsOf(const Requirement &requirement) const {
    return std::span(contributions)
        .subspan(requirement.firstContribution, requirement.numContributions);
  }
  std::span<const Place> placesOf(const Witness &witness) const {
    return std::span(places).subspan(witness.firstPlace, witness.numPlaces);
  }
};

} // namespace occl::plan
