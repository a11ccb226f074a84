// How the proofs report: nothing, or the error.
#pragma once

#include "plan/io/printer.h"
#include "plan/verify/verifier.h"

namespace occl::plan::verify {

using Finding = std::optional<VerifyError>;

/// "output[3]" of rank 2 in words: "rank 2, output chunk 3".
std::string describeChunk(uint32_t rank, OperandKind kind, uint32_t chunk);

/// An error at Plan::instructions[instruction] of a plan of good shape.
VerifyError errorAt(const Plan &plan, uint32_t instruction, Code code, std::string message);

/// A line of a witness about Plan::instructions[instruction]: `before`, what it does and where,
/// `after`.
Note noteAt(const Plan &plan, uint32_t instruction, const std::string &before = "",
            const std::string &after = "");

} // namespace occl::plan::verify
