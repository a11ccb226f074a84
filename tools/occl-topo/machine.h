// A machine, as `occl topo` finds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::topo {

/// Cores at one memory.
struct NumaNode {
  unsigned osIndex = 0;
  uint32_t cores = 0; // that this process may use
};

struct Gpu {
  std::string name, bus;      // "NVIDIA H100 80GB HBM3", "0000:1B:00.0" in capitals
  uint64_t pcieMegabytes = 0; // a second, in one direction; 0: not known
  /// NVLink in one direction, nominal, MB/s: to switches, and to other GPUs by their number.
  uint64_t toSwitches = 0;
  std::vector<uint64_t> toGpus;
};

struct Machine {
  std::string processor;
  std::string foundBy;             // "hwloc 2.9.0"
  std::vector<NumaNode> numaNodes; // those with cores
  /// As firmware tells it, 10 to oneself; empty: not known.
  std::vector<std::vector<uint64_t>> distances;
  std::vector<Gpu> gpus;
};

} // namespace occl::topo
