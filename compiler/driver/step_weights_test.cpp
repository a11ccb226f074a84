// The weights that passes have without a topology are those of the cost model's GPUs.
#include "compiler/analysis/StepWork.h"
#include "compiler/cost/StepCosts.h"
#include "compiler/topology/Machines.h"

#include <gtest/gtest.h>

namespace occl {
namespace {

using cost::Picoseconds;

Picoseconds rounded(Picoseconds time, Picoseconds unit) { return (time + unit / 2) / unit; }

TEST(StepWeights, AreThoseOfTheCostModel) {
  const topology::Topology machine = topology::nvlinkSwitch(8);
  const topology::Costs &costs = machine.costs;
  // The unit: to read or write a chunk of one tile.
  const Picoseconds chunk = (cost::durationOf(costs.tileBytes, costs.read) +
                             cost::durationOf(costs.tileBytes, costs.write)) /
                            2;
  const Picoseconds way = topology::kMicrosecond; // of the switch
  EXPECT_EQ(analysis::kStepOverhead, rounded(costs.instruction, chunk));
  EXPECT_EQ(analysis::kMessageLatency,
            rounded(costs.of(plan::Protocol::Simple).latency + way, chunk));
}

} // namespace
} // namespace occl
