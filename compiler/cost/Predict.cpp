#include "compiler/cost/Predict.h"

#include "compiler/cost/Simulation.h"

namespace occl::cost {

support::Expected<Prediction> predict(const plan::Plan &plan, const topology::Topology &topology,
                                      const PredictOptions &options) {
  support::Expected<Network> network = Network::make(plan, topology);
  if (!network)
    return network.status();
  return Simulation(plan, topology, options, std::move(*network)).run();
}

support::Expected<Picoseconds> predictLatency(const plan::Plan &plan,
                                              const topology::Topology &topology) {
  support::Expected<Prediction> empty = predict(plan, topology, {});
  if (!empty)
    return empty.status();
  return empty->makespan;
}

Bounds boundsOf(const Prediction &prediction) {
  // The link that is busy longest.
  Bounds bounds;
  for (const ResourceUse &use : prediction.resources)
    if (use.busy > bounds.busiestResource) {
      bounds.busiestResource = use.busy;
      bounds.resource = use.name;
    }
  // Only some tiles were simulated; the blocks' times are scaled to all of them.
  double scale =
      static_cast<double>(prediction.tiles) / static_cast<double>(prediction.simulatedTiles);
  for (uint32_t i = 0; i < prediction.blocks.size(); ++i) {
    auto busy = static_cast<Picoseconds>(static_cast<double>(prediction.blocks[i].busy) * scale);
    if (busy > bounds.busiestBlock) {
      bounds.busiestBlock = busy;
      bounds.block = i;
    }
  }
  return bounds;
}

} // namespace occl::cost
