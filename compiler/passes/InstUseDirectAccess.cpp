#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/direct/DirectTransfers.h"
#include "compiler/passes/direct/SignalPlacement.h"

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

/// What was asked for and is not there.
void warnOfKept(inst::ProgramOp op, const passes::KeptMessages &kept) {
  // Only if the user has asked for direct accesses and some messages stay.
  if (kept.kept() == 0)
    return;
  InFlightDiagnostic warning = emitWarning(kept.location ? Location(kept.location) : op.getLoc());
  warning << kept.kept() << " of " << kept.all
          << " messages that could be direct accesses stay messages, this one the first: ";
  const char *separator = "";
  auto add = [&](uint64_t number, const char *why) {
    if (number == 0)
      return;
    warning << separator << why << " (" << number << ")";
    separator = "; ";
  };
  // Each reason with its number, so that one sees which is worth looking at.
  add(kept.spoils, "an access would read or spoil another value, or a write would wait for another "
                   "rank's accesses, as in place it often does");
  add(kept.mixes, "accesses and messages meet in an instruction that cannot be divided");
  add(kept.nowhere, "what is passed on is in no buffer");
  warning << " [W100]";
}

/// Of a program whose clocks are too large, if it has messages that could be accesses.
void warnOfSize(inst::ProgramOp op, const Program &program, llvm::ArrayRef<uint32_t> groups) {
  // Connections within a group.
  bool isConcerned = llvm::any_of(program.connections, [&](const inst::Connection &connection) {
    return llvm::any_of(connection.destinations,
                        [&](uint32_t rank) { return groups[rank] == groups[connection.source]; });
  });
  if (!isConcerned)
    return;
  emitWarning(op.getLoc()) << "no message becomes a direct access: to place the signals of "
                           << numSteps(program) << " instructions would take more than "
                           << (kMaxClockWords * sizeof(uint32_t) >> 20)
                           << " MiB; fewer ranks, thread blocks or instances need less [W100]";
}

LogicalResult useDirectAccess(Program &program, inst::ProgramOp op,
                              const passes::DirectOptions &options) {
  // This pass rewrites scheduled programs: it needs connections, thread blocks and an order in
  // which everything completes.
  if (hasTransfers(program))
    return op.emitOpError("has transfers; this pass runs after inst-synchronize");
  program.numTransfers = 0;
  if (options.groups.size() != program.ranks.size())
    return op.emitOpError("has ") << program.ranks.size() << " ranks, but groups are given for "
                                  << options.groups.size();
  // Clocks grow with thread blocks times instructions; a large program stays as it is, with a
  // warning.
  if (passes::signalPlacementWords(program) > kMaxClockWords) {
    warnOfSize(op, program, options.groups);
    return success();
  }
  // Any order that completes will do: the signals placed by it make it hold.
  std::optional<std::vector<passes::StepRef>> order = passes::linearOrder(program);
  if (!order)
    return op.emitOpError(
        "does not complete with its ranks' instructions in their order; this pass "
        "runs after inst-schedule");
  passes::KeptMessages kept;
  // Accesses take away the waiting that messages did, so that signals have to do it.
  if (passes::useDirectTransfers(program, *order, options, &kept))
    passes::placeSignals(program, *order);
  warnOfKept(op, kept);
  return success();
}

class InstUseDirectAccessPass
    : public passes::impl::InstUseDirectAccessBase<InstUseDirectAccessPass> {
  using InstUseDirectAccessBase::InstUseDirectAccessBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      passes::DirectOptions options{{groups.begin(), groups.end()}, reassociate};
      // Without groups by rank, consecutive ranks.
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
