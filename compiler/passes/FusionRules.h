// The rules of inst-fuse, on the steps of one rank. Each keeps the rank's order valid; what it does
// to other ranks shows only in the order and number of messages in flight, which the pass checks
// afterwards.
#pragma once

#include "compiler/analysis/StepGraph.h"

namespace occl::passes {

/// Whether a source of the instruction arrives from another rank.
bool receives(const inst::Instruction &instruction);

/// Lets the instruction that computes a value store it where a copy would take it, if nobody else
/// reads the value.
void forwardCopies(const analysis::Program &program, analysis::Rank &rank);

/// Makes what arrives a source of the reduction that alone reads it, if no later message of the
/// connection is received in between. `apart` has a flag for each transfer that must not be fused.
void absorbReceives(const analysis::Program &program, const analysis::Network &network,
                    analysis::Rank &rank, const std::vector<bool> &apart);

/// Makes a send of exactly what an instruction received, or reduced from what it received, a
/// destination of that instruction, if no other message is sent on the connection in between.
void fuseSends(const analysis::Program &program, const analysis::Network &network,
               analysis::Rank &rank, const std::vector<bool> &apart);

} // namespace occl::passes
