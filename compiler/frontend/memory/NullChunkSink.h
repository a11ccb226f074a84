#pragma once

#include "compiler/frontend/memory/ChunkSink.h"

namespace occl::frontend {

/// Makes nothing of what a program does: for callers that ask only whether it is right, or what it
/// says.
class NullChunkSink : public ChunkSink {
public:
  ChunkHandle read(const ChunkRange &, SourceRange) override { return 0; }
  ChunkHandle copy(ChunkHandle, const ChunkRange &, SourceRange) override { return 0; }
  ChunkHandle reduce(std::span<const ChunkHandle>, const ChunkRange &, SourceRange) override {
    return 0;
  }
  void useHints(const Hints &) override {}
};

} // namespace occl::frontend
