#include "compiler/topology/Machines.h"

#include <numeric>

namespace occl::topology {

Costs hostCosts() {
  // Measured on hosts; docs/cost_model.md says what each is.
  Costs costs;
  costs.start = 500 * kNanosecond;
  costs.instruction = 100 * kNanosecond;
  costs.dependency = 100 * kNanosecond;
  costs.read = costs.write = costs.push = costs.pull = 30 * kGigabyte;
  costs.fetched = true;
  costs.executors = 1;
  costs.handover = 1500 * kNanosecond;
  costs.memory = 27 * kGigabyte;
  costs.cacheBytes = 8 << 20;
  costs.protocols.fill({100 * kNanosecond, 1000});
  return costs;
}

Costs gpuCosts() {
  // Measured on H100 and H200; docs/cost_model.md says what each is.
  Costs costs;
  costs.start = 1 * kMicrosecond;
  costs.instruction = 1300 * kNanosecond;
  costs.dependency = 500 * kNanosecond;
  costs.read = 125 * kGigabyte;
  costs.write = 166 * kGigabyte;
  costs.push = 70 * kGigabyte;
  costs.pull = 36 * kGigabyte;
  costs.executors = 132;
  costs.protocols = {ProtocolCosts{2200 * kNanosecond, 1000},
                     {900 * kNanosecond, 2000},
                     {1200 * kNanosecond, 1067}};
  costs.lines = {.bandwidth = 20 * kGigabyte,
                 .straightBytes = 60 << 10,
                 .instruction = 300 * kNanosecond,
                 .tileBytes = 3840};
  return costs;
}

Topology sharedMemory(uint32_t ranks, uint32_t cores) {
  // One switch that all ranks are at: memory, of which each rank has a port.
  Topology result;
  result.name = "shared memory";
  result.costs = hostCosts();
  result.costs.cores = cores;
  result.addNode(ranks);
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  result.addSwitch({"shared memory", std::move(all), 100 * kGigabyte, 100 * kNanosecond});
  return result;
}

Topology nvlinkSwitch(uint32_t gpus, uint32_t nodes) {
  // GPUs of a node at one switch; several nodes have a NIC for each GPU, as DGX machines have.
  Topology result;
  result.name = "NVLink switch";
  result.costs = gpuCosts();
  for (uint32_t node = 0; node < nodes; ++node) {
    result.addNode(gpus);
    std::vector<uint32_t> local(gpus);
    std::iota(local.begin(), local.end(), node * gpus);
    result.addSwitch({"NVLink", local, 360 * kGigabyte, 1 * kMicrosecond});
    for (uint32_t rank : nodes > 1 ? local : std::vector<uint32_t>())
      result.addNic({node, {rank}, 48 * kGigabyte, 1500 * kNanosecond});
  }
  return result;
}

} // namespace occl::topology
