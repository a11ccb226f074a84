// Connections of ranks that access each other's memory, apart from those of others.
#pragma once

#include "compiler/analysis/Program.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace occl::passes {

/// Gives the members of the sender's group connections of their own where others hear the same,
/// except for the connections that are to stay whole. Returns, for each new connection, which one
/// it is of.
std::vector<uint32_t> splitByGroups(analysis::Program &program, llvm::ArrayRef<uint32_t> groups,
                                    const std::vector<bool> &staysWhole);

/// Removes the connections that are not used. No step has a message of one of these.
void dropConnections(analysis::Program &program, const std::vector<bool> &isUsed);

} // namespace occl::passes
