#include "tools/occl-topo/cpus.h"

#include <hwloc.h>

#include <cstdlib>
#include <memory>
#include <sys/stat.h>

namespace occl::topo {

namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

std::string version() {
  const unsigned api = hwloc_get_api_version();
  return "hwloc " + std::to_string(api >> 16) + "." + std::to_string(api >> 8 & 0xff);
}

void findNumaNodes(hwloc_topology_t topology, Machine &machine) {
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    NumaNode found{node->os_index};
    for (hwloc_obj_t core = nullptr;
         (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
      // Nodes without cores (of memory alone, as high-bandwidth memory) run no ranks.
      found.cores += hwloc_bitmap_isincluded(core->cpuset, node->cpuset) != 0;
    if (found.cores > 0)
      machine.numaNodes.push_back(found);
  }
}

/// Of the nodes that have cores.
void findDistances(hwloc_topology_t topology, Machine &machine) {
  // ACPI's SLIT table as hwloc has it: 10 is the distance of a node to itself.
  hwloc_distances_s *found = nullptr;
  unsigned number = 1;
  if (hwloc_distances_get_by_name(topology, "NUMALatency", &number, &found, 0) != 0 || number == 0)
    return;
  // The table has its own order of nodes.
  const auto positionOf = [&](const NumaNode &node) {
    for (unsigned i = 0; i < found->nbobjs; ++i)
      if (found->objs[i] && found->objs[i]->os_index == node.osIndex)
        return static_cast<int>(i);
    return -1;
  };
  std::vector<std::vector<uint64_t>> distances;
  bool isWhole = true;
  // A row and a column for each node that runs ranks; a table that lacks one of them is not used at
  // all.
  for (const NumaNode &from : machine.numaNodes) {
    distances.emplace_back();
    for (const NumaNode &to : machine.numaNodes) {
      const int row = positionOf(from), column = positionOf(to);
      isWhole &= row >= 0 && column >= 0;
      if (isWhole)
        distances.back().push_back(found->values[static_cast<unsigned>(row) * found->nbobjs +
                                                 static_cast<unsigned>(column)]);
    }
  }
  if (isWhole)
    machine.distances = std::move(distances);
  hwloc_distances_release(topology, found);
}

/// hwloc takes this machine where it cannot read the record of another. Nothing, or what is wrong
/// with the one that is named.
std::string takeRecord(hwloc_topology_t topology) {
  const char *xml = std::getenv("HWLOC_XMLFILE"), *root = std::getenv("HWLOC_FSROOT");
  if (xml && *xml && hwloc_topology_set_xml(topology, xml) != 0)
    return "HWLOC_XMLFILE names '" + std::string(xml) +
           "', which cannot be read or is no file of lstopo";
  struct stat folder {};
  if (root && *root && (stat(root, &folder) != 0 || !S_ISDIR(folder.st_mode)))
    return "HWLOC_FSROOT names '" + std::string(root) + "', which is no folder";
  return "";
}

} // namespace

std::string findCpus(Machine &machine) {
  // hwloc reads this machine, or a record of another one if its variables name one.
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0)
    return "hwloc does not start";
  const Topology topology(made);
  if (const std::string wrong = takeRecord(topology.get()); !wrong.empty())
    return wrong;
  if (hwloc_topology_load(topology.get()) != 0)
    return "hwloc cannot find out what this machine is; HWLOC_XMLFILE and HWLOC_FSROOT in the "
           "environment must name what exists";
  machine.foundBy = version();
  // Only for a comment in the topology's file.
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0);
  if (const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr)
    machine.processor = model;
  findNumaNodes(topology.get(), machine);
  findDistances(topology.get(), machine);
  return machine.numaNodes.empty() ? "hwloc has found no cores" : "";
}

} // namespace occl::topo
