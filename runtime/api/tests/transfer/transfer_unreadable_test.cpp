// Processes that may not read each other's memory: then large data go through the rings, too.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/transfer_graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <sys/uio.h>
#include <vector>

static std::atomic<uint32_t> attempts{0};

/// In the place of the system's, as where a security module forbids it.
extern "C" ssize_t process_vm_readv(pid_t, const iovec *, unsigned long, const iovec *,
                                    unsigned long, unsigned long) {
  ++attempts;
  errno = EPERM;
  return -1;
}

namespace occl::communicator::testing {
namespace {

TEST(TransferUnreadable, AnyOrderInGroups) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  inProcesses(kRanks, "unreadable", [&](occlComm_t comm, uint32_t rank) -> std::string {
    if (attempts == 0)
      return "the system's function was asked";
    const uint32_t before = attempts;
    std::string wrong;
    for (uint64_t round = 0; round < 10 / std::min(kSlowness, 5u) && wrong.empty(); ++round)
      wrong = TransferGraph(kRanks, 100, 3000000, seed + round).run(comm, rank);
    return wrong.empty() && attempts != before ? "memory was read all the same" : wrong;
  });
}

/// A large send ends when the last of it is in the ring.
TEST(TransferUnreadable, TheLastOfASendIsEager) {
  inProcesses(2, "unreadable_end", [&](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<char> data(150000, rank == 0 ? 'x' : ' ');
    const std::vector<char> expected(150000, 'x');
    if (rank == 0) // nobody receives before this has returned
      return occlSend(data.data(), data.size(), occlUint8, 1, comm, nullptr) == occlSuccess &&
                     occlSend(nullptr, 0, occlUint8, 1, comm, nullptr) == occlSuccess
                 ? ""
                 : occlGetLastError();
    if (occlRecv(data.data(), data.size(), occlUint8, 0, comm, nullptr) != occlSuccess ||
        occlRecv(nullptr, 0, occlUint8, 0, comm, nullptr) != occlSuccess)
      return occlGetLastError();
    return data == expected ? "" : "wrong data";
  });
}

} // namespace
} // namespace occl::communicator::testing
