// The rules of inst-fuse, on the steps of one rank. Each keeps the rank's order valid; what it does
// to other ranks shows only in the order and number of messages in flight, which the pass checks
// afterwards.
#pragma once

#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/StepGraph.h"

#include <optional>

namespace occl::passes {

/// Whether a source of the instruction arrives from another rank.
bool receives(const inst::Instruction &instruction);

/// The step whose local result is exactly the one source of `step`; nothing if there is none.
std::optional<uint32_t> exactProducer(const analysis::Rank &rank,
                                      const analysis::RankDependences &dependences, uint32_t step);

/// Lets the instruction that computes a value in scratch store it where a copy would take it, if
/// all who read the value can read it there.
void forwardCopies(const analysis::Program &program, analysis::Rank &rank);

struct FusionOptions {
  std::vector<bool> apart;  // of each transfer: whether it must not be fused
  bool reassociate = false; // whether reductions may round 16-bit floats less often
  bool foldArrivals = true; // whether transfers may be sources of reductions
};

/// Lets a reduction that alone reads a value compute it: what arrives, or is a copy, becomes a
/// source of it; if `reassociate`, a reduction that is its first source is reduced there, so that a
/// chain of reductions is one. Not if a later message of a connection is received in between, or an
/// operand is overwritten.
void absorbSources(const analysis::Program &program, const analysis::Network &network,
                   analysis::Rank &rank, const FusionOptions &options);

/// Makes a send of exactly what an instruction received, or reduced from what it received, a
/// destination of that instruction, if no other message is sent on the connection in between, and
/// the result goes on in at most `maxFanOut` messages. `apart` is as above.
void fuseSends(const analysis::Program &program, const analysis::Network &network,
               analysis::Rank &rank, const std::vector<bool> &apart, uint32_t maxFanOut);

} // namespace occl::passes
