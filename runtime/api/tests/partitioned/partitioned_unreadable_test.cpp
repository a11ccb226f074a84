// Processes that may not read each other's memory: buffers of occlMemAlloc are sent all the same.
#include "runtime/api/testing/partitioned_graph.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <cerrno>
#include <sys/uio.h>

/// In the place of the system's, as where a security module forbids it.
extern "C" ssize_t process_vm_readv(pid_t, const iovec *, unsigned long, const iovec *,
                                    unsigned long, unsigned long) {
  errno = EPERM;
  return -1;
}

namespace occl::communicator::testing {
namespace {

TEST(PartitionedUnreadable, BuffersOfTheHeap) {
  const uint64_t seed = printedSeed();
  inProcesses(2, "part_unreadable", [&](occlComm_t comm, uint32_t rank) {
    const PartitionedGraph::Memory memory = PartitionedGraph::ofHeap(comm);
    return PartitionedGraph(2, 12, 400000, seed).run(comm, rank, 3, &memory);
  });
}

/// Any other is refused when the request is made; to oneself it is none of others' business.
TEST(PartitionedUnreadable, OtherBuffersAreRefused) {
  inProcesses(2, "part_unreadable_no", [&](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<int32_t> values(12);
    Part part, own, empty;
    if (occlPsendInit(comm, values.data(), 4, 3, occlInt32, 1 - rank, 0, nullptr, &part) !=
            occlInvalidArgument ||
        !hasText("the buffer of a partitioned send has to be of occlMemAlloc"))
      return "not refused: " + lastText();
    if (occlPsendInit(comm, values.data(), 4, 3, occlInt32, rank, 0, nullptr, &own) !=
            occlSuccess ||
        occlPsendInit(comm, values.data(), 4, 0, occlInt32, 1 - rank, 1, nullptr, &empty) !=
            occlSuccess)
      return lastText();
    return {};
  });
}

} // namespace
} // namespace occl::communicator::testing
