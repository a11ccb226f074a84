#include "compiler/passes/DirectTransfers.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/SignalPlacement.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTUSEDIRECTACCESS
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;

namespace {

/// Clocks of larger programs would take more than 256 MiB; they keep their connections.
constexpr uint64_t kMaxClockWords = uint64_t{1} << 26;

LogicalResult useDirectAccess(Program &program, inst::ProgramOp op, uint32_t groupSize) {
  if (program.numTransfers != 0)
    return op.emitOpError("has transfers; this pass runs after inst-synchronize");
  if (groupSize < 2 || passes::signalPlacementWords(program) > kMaxClockWords)
    return success();
  std::optional<std::vector<passes::StepRef>> order = passes::linearOrder(program);
  if (!order)
    return op.emitOpError(
        "does not complete with its ranks' instructions in their order; this pass "
        "runs after inst-schedule");
  if (passes::useDirectTransfers(program, *order, groupSize))
    passes::placeSignals(program, *order);
  return success();
}

class InstUseDirectAccessPass
    : public passes::impl::InstUseDirectAccessBase<InstUseDirectAccessPass> {
  using InstUseDirectAccessBase::InstUseDirectAccessBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      return useDirectAccess(program, op, groupSize);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
