#include "plan/verify/checks/finding.h"

#include "plan/model/names.h"

namespace occl::plan::verify {

std::string describeChunk(uint32_t rank, OperandKind kind, uint32_t chunk) {
  return "rank " + std::to_string(rank) + ", " + std::string(nameOf(kind)) + " chunk " +
         std::to_string(chunk);
}

VerifyError errorAt(const Plan &plan, uint32_t instruction, Code code, std::string message) {
  return {.code = code,
          .message = std::move(message),
          .place = placeOf(plan, instruction),
          .location = plan.instructions[instruction].location};
}

Note noteAt(const Plan &plan, uint32_t instruction, const std::string &before,
            const std::string &after) {
  return {before + describe(plan, instruction) + after, placeOf(plan, instruction),
          plan.instructions[instruction].location};
}

} // namespace occl::plan::verify
