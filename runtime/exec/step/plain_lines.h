// Which instructions are nothing but lines. Host code.
#pragma once

#include "runtime/exec/step/invocation.h"

#include <algorithm>
#include <span>

namespace occl::interpreter {

/// One tile, one slice, nothing to wait for but lines and announcements, nothing to store but lines
/// and buffers. Of the first instruction of a step: all the step's are so.
inline bool isPlainLines(const Program &program, const BoundInstruction &instruction) {
  return program.line.bytes != 0 && program.numTiles == 1 && instruction.count != 0 &&
         instruction.contiguous && instruction.elements <= instruction.sliceElements &&
         instruction.numAcquires == 0 && !instruction.published &&
         std::ranges::none_of(
             std::span(program.releases + instruction.firstRelease, instruction.numReleases),
             &BoundRelease::isStored);
}

} // namespace occl::interpreter
