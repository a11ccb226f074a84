#include "compiler/cost/Predict.h"

#include "compiler/cost/Simulation.h"

namespace occl::cost {

plan::Expected<Prediction> predict(const plan::Plan &plan, const topology::Topology &topology,
                                   const PredictOptions &options) {
  plan::Expected<Network> network = Network::make(plan, topology);
  if (!network)
    return network.status();
  return Simulation(plan, topology, options, std::move(*network)).run();
}

plan::Expected<Bounds> boundsOf(const plan::Plan &plan, const topology::Topology &topology,
                                const Prediction &prediction) {
  plan::Expected<Prediction> empty = predict(plan, topology, {});
  if (!empty)
    return empty.status();
  Bounds bounds;
  bounds.latencyChain = empty->makespan;
  for (const ResourceUse &use : prediction.resources)
    if (use.busy > bounds.busiestResource) {
      bounds.busiestResource = use.busy;
      bounds.resource = use.name;
    }
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
