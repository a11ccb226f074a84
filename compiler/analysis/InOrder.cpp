#include "compiler/analysis/InOrder.h"

#include "compiler/analysis/RanksInOrder.h"
#include "plan/machine/drivers.h"

namespace occl::analysis {

bool completesInOrder(const Program &program, const Network &network, uint32_t depth) {
  if (!messagesKeepOrder(program, network))
    return false;
  const RanksInOrder ranks(program, network);
  return plan::machine::Greedy(ranks, depth).run([](uint32_t, uint32_t) {});
}

} // namespace occl::analysis
