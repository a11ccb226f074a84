#include "tools/occl-topo/topo_text.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>

namespace occl::topo {

namespace {

/// Of the nominal bandwidth of NVLink and PCIe what thread blocks reach.
constexpr uint64_t kReachedPercent = 80;

std::string bandwidthOf(uint64_t nominalMegabytes) {
  return fmt::format("{} MB/s", nominalMegabytes * kReachedPercent / 100);
}

uint32_t coresOf(const Machine &machine) {
  return std::accumulate(machine.numaNodes.begin(), machine.numaNodes.end(), 0u,
                         [](uint32_t sum, const NumaNode &node) { return sum + node.cores; });
}

std::string ofOneMemory(const Machine &machine, const std::string &name) {
  // Any number of ranks, one for each core by default: they share one memory, which is a switch.
  return fmt::format("topology {}(ranks: int = {}) {{\n"
                     "  machine host;\n"
                     "  cost cores = {};\n"
                     "  node ranks;\n"
                     "  switch memory of 0..ranks bandwidth 100 GB/s latency 100 ns;\n"
                     "}}\n",
                     name, coresOf(machine), coresOf(machine));
}

/// A switch is a memory; ranks of different ones have links, which go before switches.
std::string ofSeveralMemories(const Machine &machine, const std::string &name) {
  std::string text = fmt::format("topology {}() {{\n"
                                 "  machine host;\n"
                                 "  cost cores = {};\n"
                                 "  node {};\n",
                                 name, coresOf(machine), coresOf(machine));
  // The first rank of each node: ranks are numbered node by node, one for each core.
  std::vector<uint32_t> first = {0};
  for (const NumaNode &node : machine.numaNodes)
    first.push_back(first.back() + node.cores);
  for (size_t a = 0; a < machine.numaNodes.size(); ++a)
    text += fmt::format("  switch memory{} of {}..{} bandwidth 100 GB/s latency 100 ns;\n",
                        machine.numaNodes[a].osIndex, first[a], first[a + 1]);
  // Between any two nodes a link for each pair of their ranks, with the latency that the distance
  // says: 10 is local, and is taken for 100 ns.
  for (size_t a = 0; a < machine.numaNodes.size(); ++a)
    for (size_t b = a + 1; b < machine.numaNodes.size(); ++b)
      text += fmt::format(
          "  for a in {}..{} {{\n"
          "    for b in {}..{} {{ link a -> b duplex bandwidth 100 GB/s latency {} ns; }}\n"
          "  }}\n",
          first[a], first[a + 1], first[b], first[b + 1],
          machine.distances.empty()
              ? 200
              : 10 * std::max(machine.distances[a][b], machine.distances[b][a]));
  return text + "}\n";
}

std::string ofGpus(const Machine &machine, const std::string &name) {
  const std::vector<Gpu> &gpus = machine.gpus;
  std::string text = fmt::format("topology {}() {{\n"
                                 "  machine gpu;\n"
                                 "  node {};\n",
                                 name, gpus.size());
  // NVLink to other GPUs, and whether each reaches each other so.
  bool isLinked = true;
  for (size_t a = 0; a < gpus.size(); ++a)
    for (size_t b = a + 1; b < gpus.size(); ++b) {
      // The slower direction counts for both.
      const uint64_t bandwidth = std::min(gpus[a].toGpus[b], gpus[b].toGpus[a]);
      isLinked &= bandwidth > 0;
      if (bandwidth > 0)
        text += fmt::format("  link {} -> {} duplex bandwidth {} latency 1500 ns;\n", a, b,
                            bandwidthOf(bandwidth));
    }
  // Switches of NVLink: one, with the bandwidth of the GPU that has the fewest links.
  const uint64_t toSwitches = std::ranges::min_element(gpus, {}, &Gpu::toSwitches)->toSwitches;
  const std::string all = fmt::format("0..{}", gpus.size());
  if (toSwitches > 0)
    text += fmt::format("  switch nvlink of {} bandwidth {} latency 1 us;\n", all,
                        bandwidthOf(toSwitches));
  // PCIe where there is no NVLink.
  const uint64_t pcie = std::ranges::min_element(gpus, {}, &Gpu::pcieMegabytes)->pcieMegabytes;
  if (gpus.size() > 1 && !isLinked && toSwitches == 0 && pcie > 0)
    text +=
        fmt::format("  switch pcie of {} bandwidth {} latency 2500 ns;\n", all, bandwidthOf(pcie));
  return text + "}\n";
}

} // namespace

std::string topologyText(const Machine &machine, const std::string &name) {
  // The first line says where the numbers come from, so that nobody takes them for measured ones.
  const std::string processor = machine.processor.empty() ? "processor" : machine.processor;
  if (!machine.gpus.empty())
    return fmt::format("// {} x {}. Bandwidths are {} % of what NVML says of links; latencies and "
                       "costs are "
                       "typical, not measured.\n",
                       machine.gpus.size(), machine.gpus[0].name, kReachedPercent) +
           ofGpus(machine, name);
  return fmt::format(
             "// {}: {} cores at {} ({}). Bandwidths and costs are typical, not measured.\n",
             processor, coresOf(machine),
             machine.numaNodes.size() == 1 ? "one memory"
                                           : fmt::format("{} memories", machine.numaNodes.size()),
             machine.foundBy) +
         (machine.numaNodes.size() == 1 ? ofOneMemory(machine, name)
                                        : ofSeveralMemories(machine, name));
}

} // namespace occl::topo
