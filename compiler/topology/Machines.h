// Costs of known kinds of machine, and topologies for when no file is given.
#pragma once

#include "compiler/topology/Topology.h"

namespace occl::topology {

/// Ranks that are processes or threads of one machine and share its memory, as the host runtime
/// runs them: one executor a rank, messages fetched from the sender's memory.
Costs hostCosts();
/// Ranks that are GPUs of the H200 class; a thread block is 512 threads. NVLink multicast is not
/// used.
Costs gpuCosts();

/// One node of `ranks` ranks over shared memory, with hostCosts() and `cores` processors; 0: one
/// for each rank.
Topology sharedMemory(uint32_t ranks, uint32_t cores = 0);
/// Nodes of `gpus` GPUs at one NVLink switch each, with gpuCosts(); over several nodes a NIC for
/// each GPU.
Topology nvlinkSwitch(uint32_t gpus, uint32_t nodes = 1);

} // namespace occl::topology
