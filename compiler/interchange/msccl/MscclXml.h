// The content of an MSCCL XML file as plain data. docs/interchange.md describes the format.
#pragma once

#include "compiler/frontend/diagnostics/SourceManager.h"
#include "plan/collectives/collectives.h"
#include "plan/model/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::interchange::msccl {

/// As MSCCL calls the collective; RCCL calls it as plans do.
std::string_view mscclNameOf(plan::StandardCollective collective);

enum class StepType : uint8_t {
  Send,
  Recv,
  RecvCopySend,
  RecvReduceSend,
  RecvReduceCopy,
  RecvReduceCopySend,
  Copy,
  Reduce,
  ResidualAdd,
  Nop
};

/// What a type of step uses. `readsSource`: srcbuf and srcoff name a range of this rank;
/// `writesDestination`: dstbuf and dstoff do.
struct StepShape {
  std::string_view name;
  bool sends, receives, readsSource, writesDestination;
};
const StepShape &shapeOf(StepType type);
/// The type that XML calls `name`.
std::optional<StepType> stepTypeOf(std::string_view name);

/// A range of this rank's chunks; index is -1 if the file names none.
struct Range {
  plan::OperandKind buffer = plan::OperandKind::Input;
  int32_t index = -1;
};

struct Step {
  uint32_t offset = 0; // of the element in the file, also below
  StepType type = StepType::Nop;
  /// Whether another step may wait for this one; nothing if the file does not say.
  std::optional<bool> signals;
  Range source, destination;
  uint32_t count = 1;
  /// The step that this one waits for; dependencyBlock is -1 if there is none.
  int32_t dependencyBlock = -1;
  int32_t dependencyStep = -1;
};

struct ThreadBlock {
  uint32_t offset = 0;
  int32_t id = 0;
  int32_t sendPeer = -1, recvPeer = -1; // -1: none
  uint32_t channel = 0;
  std::vector<Step> steps; // in order; the number of a step is its position
};

/// Input to output, before the first step of its rank.
struct InitialCopy {
  uint32_t offset = 0;
  uint32_t inputChunk = 0, outputChunk = 0, count = 1;
};

struct Gpu {
  uint32_t offset = 0;
  int32_t id = 0;
  uint32_t inputChunks = 0, outputChunks = 0, scratchChunks = 0;
  std::vector<InitialCopy> copies;
  std::vector<ThreadBlock> threadBlocks; // by id, after checkAlgorithm
};

struct Algorithm {
  uint32_t offset = 0;
  std::string name;
  std::string collective; // as the file spells it; may be empty
  plan::Protocol protocol = plan::Protocol::Simple;
  uint32_t numGpus = 0;
  uint32_t chunksPerLoop = 0; // 0: not given
  bool inPlace = false;
  std::optional<bool> outOfPlace;
  std::optional<uint64_t> minBytes, maxBytes; // of a whole buffer
  std::vector<Gpu> gpus;                      // by id, after checkAlgorithm
};

} // namespace occl::interchange::msccl
