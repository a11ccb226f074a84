#pragma once

#include "compiler/frontend/memory/ChunkEmitter.h"

namespace occl::frontend {

/// Makes nothing of what a program does: for callers that ask only whether it is right, or what it
/// says.
class NoEmitter : public ChunkEmitter {
public:
  ChunkHandle read(const ChunkRange &, SourceRange) override { return 0; }
  ChunkHandle copy(ChunkHandle, const ChunkRange &, SourceRange) override { return 0; }
  ChunkHandle reduce(std::span<const ChunkHandle>, const ChunkRange &, SourceRange) override {
    return 0;
  }
  void useHints(const Hints &) override {}
};

} // namespace occl::frontend
