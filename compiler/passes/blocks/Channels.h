// Which channels messages use: few, but enough that what is to run side by side does not share a
// connection.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/inst/Inst.h"

namespace occl::passes {

/// For each transfer of `program` one of `numColors` colors, or -1 where the source asks for a
/// channel or a thread block somewhere on its way. Transfers that an instruction ties together,
/// from rank to rank, are one flow and have one color; the work of each rank is spread evenly over
/// the colors.
std::vector<int32_t> colorFlows(const analysis::Program &program, uint32_t numColors);

/// Gives every transfer a channel: the one asked for, else the lowest from the program's default on
/// such that transfers between the same ranks with different colors or for different thread blocks
/// have different ones. Reports channels that are not below `maxChannels`.
mlir::LogicalResult assignChannels(analysis::Program &program, llvm::ArrayRef<int32_t> colors,
                                   uint32_t maxChannels);

} // namespace occl::passes
