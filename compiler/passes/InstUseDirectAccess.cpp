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

LogicalResult useDirectAccess(Program &program, inst::ProgramOp op,
                              const passes::DirectOptions &options) {
  if (program.numTransfers != 0)
    return op.emitOpError("has transfers; this pass runs after inst-synchronize");
  if (options.groups.size() != program.ranks.size())
    return op.emitOpError("has ") << program.ranks.size() << " ranks, but groups are given for "
                                  << options.groups.size();
  if (passes::signalPlacementWords(program) > kMaxClockWords)
    return success();
  std::optional<std::vector<passes::StepRef>> order = passes::linearOrder(program);
  if (!order)
    return op.emitOpError(
        "does not complete with its ranks' instructions in their order; this pass "
        "runs after inst-schedule");
  if (passes::useDirectTransfers(program, *order, options))
    passes::placeSignals(program, *order);
  return success();
}

class InstUseDirectAccessPass
    : public passes::impl::InstUseDirectAccessBase<InstUseDirectAccessPass> {
  using InstUseDirectAccessBase::InstUseDirectAccessBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      passes::DirectOptions options{{groups.begin(), groups.end()}, reassociate};
      if (options.groups.empty())
        for (uint32_t rank = 0; rank < program.ranks.size(); ++rank)
          options.groups.push_back(rank / std::max<uint32_t>(groupSize, 1));
      return useDirectAccess(program, op, options);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
