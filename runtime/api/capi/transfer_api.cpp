// Sends, receives, groups, and collectives with counts by rank: occl_transfer.h.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/capi/transfer_group.h"
#include "runtime/api/capi/user_callback.h"
#include "runtime/api/occl_transfer.h"

#include "runtime/base/data_type.h"
#include "support/nvtx/ranges.h"

#include <string>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::communicator;

namespace {

static_assert(OCCL_EAGER_BYTES == transfer::kEagerBytes);

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// The transfers of one call.
class Transfers {
public:
  Transfers(const occlComm &comm, occlDataType_t type) : comm(comm), given(type) {}

  /// The same for all of them.
  Status check(CUstream_st *stream) {
    if (stream && !comm.gpu)
      return invalid("stream must be NULL: the communicator is on hosts");
    if (static_cast<unsigned>(given) >= kNumDataTypes)
      return invalid("dataType " + std::to_string(given) + " is unknown");
    type = static_cast<DataType>(given);
    return {};
  }
  uint32_t rank() const { return comm.daemon->rank(); }
  uint32_t numRanks() const { return comm.daemon->numRanks(); }

  /// `displacement` elements behind the begin of the buffer.
  void send(uint32_t peer, const void *buffer, uint64_t displacement, uint64_t count) {
    add(true, peer, static_cast<char *>(const_cast<void *>(buffer)), displacement, count);
  }
  void receive(uint32_t peer, void *buffer, uint64_t displacement, uint64_t count) {
    add(false, peer, static_cast<char *>(buffer), displacement, count);
  }
  /// From this rank to itself, unless it lies there.
  void keep(const void *from, uint64_t fromDisplacement, uint64_t sent, void *to,
            uint64_t toDisplacement, uint64_t received) {
    // Equal sizes at one address: the data lie where they belong. None are at NULL.
    if (sent == received && at(from, fromDisplacement) == at(to, toDisplacement) &&
        (from || sent == 0))
      return;
    send(rank(), from, fromDisplacement, sent);
    receive(rank(), to, toDisplacement, received);
  }
  /// What the rank sends; if it sends nothing, what it receives.
  uint64_t bytes() const {
    uint64_t sent = 0, received = 0;
    for (const daemon::Transfer &transfer : transfers)
      (transfer.isSend ? sent : received) += transfer.part.bytes();
    return sent != 0 ? sent : received;
  }
  /// In the group of this thread, or at once.
  Status run(occlComm &with, CUstream_st *stream) const {
    if (!wrong.empty())
      return invalid(wrong);
    if (transfers.empty() && with.gpu)
      return with.daemon->failure();
    // All transfers of the call are checked before the first of them is noted.
    for (const daemon::Transfer &transfer : transfers)
      if (Status checked = with.daemon->check(transfer); !checked.ok())
        return checked;
    if (TransferGroup *group = TransferGroup::current()) {
      // If the communicator has failed the group's end says so: what the group has of others takes
      // place, as it does on ranks that have not heard of the failure.
      group->add(with, transfers, stream);
      return {};
    }
    void *const streams[] = {stream};
    const cuda::DeviceTransfers alone[] = {{with.gpu.get(), transfers, streams}};
    if (with.gpu)
      return cuda::transferInStreams(alone).status;
    // A failure that is known is the result, before anything begins.
    if (with.daemon->failure().code() != StatusCode::Success)
      return with.daemon->failure();
    return with.daemon->run(transfers);
  }

private:
  void add(bool isSend, uint32_t peer, char *buffer, uint64_t displacement, uint64_t count) {
    constexpr uint64_t kMostElements = uint64_t{1} << 58;
    if (displacement > kMostElements && wrong.empty())
      wrong = "displacement " + std::to_string(displacement) + " is more than 2^58";
    transfers.push_back({isSend, peer, {at(buffer, displacement), count, type}});
  }
  char *at(const void *buffer, uint64_t displacement) const {
    char *begin = static_cast<char *>(const_cast<void *>(buffer));
    return begin ? begin + displacement * sizeOf(type) : nullptr;
  }

  const occlComm &comm;
  const occlDataType_t given;
  DataType type = DataType::Uint8;
  std::string wrong; // with the first that is
  std::vector<daemon::Transfer> transfers;
};

/// fill(transfers) adds those of the call; an error is also the group's.
template <class Fill>
occlResult_t runCall(const char *function, occlComm_t comm, occlDataType_t type,
                     CUstream_st *stream, Fill fill) {
  // An error of one call is the whole group's, whose end reports it and begins nothing.
  auto refused = [](occlResult_t result) {
    if (TransferGroup *group = TransferGroup::current(); group && result != occlSuccess)
      group->refuse(static_cast<StatusCode>(result), occlGetLastError());
    return result;
  };
  if (!comm)
    return refused(reportInvalid(function, "comm must not be NULL"));
  return refused(guarded(function, comm, [&]() -> Status {
    Transfers transfers(*comm, type);
    if (Status checked = transfers.check(stream); !checked.ok())
      return checked;
    if (Status filled = fill(transfers); !filled.ok())
      return filled;
    const nvtx::Range range([&] {
      return nvtx::Named{function, comm->category, transfers.bytes()};
    });
    return transfers.run(*comm, stream);
  }));
}

/// Calls each(to, from) for each other rank `to`; every rank begins with another one.
template <class Each> void forEachShift(const Transfers &transfers, Each each) {
  const uint32_t n = transfers.numRanks(), rank = transfers.rank();
  for (uint32_t i = 1; i < n; ++i)
    each((rank + i) % n, (rank + n - i) % n);
}

Status checkRoot(const Transfers &transfers, uint32_t root) {
  return root < transfers.numRanks()
             ? Status()
             : invalid("root is " + std::to_string(root) + ", the communicator has " +
                       std::to_string(transfers.numRanks()) + " ranks");
}

} // namespace

occlResult_t occlSend(const void *buffer, uint64_t count, occlDataType_t dataType, uint32_t peer,
                      occlComm_t comm, CUstream_st *stream) {
  return runCall("occlSend", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    transfers.send(peer, buffer, 0, count);
    return {};
  });
}

occlResult_t occlRecv(void *buffer, uint64_t count, occlDataType_t dataType, uint32_t peer,
                      occlComm_t comm, CUstream_st *stream) {
  return runCall("occlRecv", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    transfers.receive(peer, buffer, 0, count);
    return {};
  });
}

occlResult_t occlGroupStart(void) {
  return guarded([]() -> Status {
    TransferGroup::enter();
    return {};
  });
}

occlResult_t occlGroupEnd(void) {
  return guarded([] { return TransferGroup::leave(); });
}

occlResult_t occlGroupEndAsync(occlComm_t comm, uint32_t callbackNeverBlocks,
                               occlCallback_t callback, void *user, occlRequest_t *request) {
  // The group's level ends although there is no communicator that could start it.
  if (TransferGroup *group = TransferGroup::current();
      group && (!comm || !comm->process.isThisProcess())) {
    group->refuse(StatusCode::InvalidArgument,
                  "occlGroupEndAsync needs a communicator of this process");
    (void)guarded([] { return TransferGroup::leave(); });
  }
  if (!comm)
    return reportInvalid("occlGroupEndAsync", "comm must not be NULL");
  return guarded("occlGroupEndAsync", comm, [&]() -> Status {
    const char *wrong = nullptr;
    if (comm->gpu)
      wrong = "there are no groups of communicators with deviceKind occlDeviceCuda yet";
    else if (!callback && !request)
      wrong = "callback and request must not both be NULL";
    else if (callbackNeverBlocks > 1)
      wrong = "callbackNeverBlocks must be 0 or 1";
    // The group is ended in any case; a refused one gives its error.
    TransferGroup *group = TransferGroup::current();
    if (wrong && group)
      group->refuse(StatusCode::InvalidArgument, wrong);
    auto started = TransferGroup::leaveAsync(
        *comm, callback ? wrapped(callback, user) : daemon::Callback(), callbackNeverBlocks != 0);
    if (!started.ok())
      return started.status();
    if (request)
      *request = *started;
    return {};
  });
}

occlResult_t occlAllToAllv(const void *sendBuffer, const uint64_t *sendCounts,
                           const uint64_t *sendDisplacements, void *recvBuffer,
                           const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                           occlDataType_t dataType, occlComm_t comm, CUstream_st *stream) {
  return runCall("occlAllToAllv", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    if (!sendCounts || !sendDisplacements || !recvCounts || !recvDisplacements)
      return invalid("counts and displacements must not be NULL");
    // The own block first, then the others', each rank beginning with another peer.
    const uint32_t own = transfers.rank();
    transfers.keep(sendBuffer, sendDisplacements[own], sendCounts[own], recvBuffer,
                   recvDisplacements[own], recvCounts[own]);
    forEachShift(transfers, [&](uint32_t to, uint32_t from) {
      transfers.send(to, sendBuffer, sendDisplacements[to], sendCounts[to]);
      transfers.receive(from, recvBuffer, recvDisplacements[from], recvCounts[from]);
    });
    return {};
  });
}

occlResult_t occlAllGatherv(const void *sendBuffer, uint64_t sendCount, void *recvBuffer,
                            const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                            occlDataType_t dataType, occlComm_t comm, CUstream_st *stream) {
  return runCall("occlAllGatherv", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    if (!recvCounts || !recvDisplacements)
      return invalid("recvCounts and recvDisplacements must not be NULL");
    // The own block goes to its place, then to all others, which send theirs.
    const uint32_t own = transfers.rank();
    transfers.keep(sendBuffer, 0, sendCount, recvBuffer, recvDisplacements[own], recvCounts[own]);
    forEachShift(transfers, [&](uint32_t to, uint32_t from) {
      transfers.send(to, sendBuffer, 0, sendCount);
      transfers.receive(from, recvBuffer, recvDisplacements[from], recvCounts[from]);
    });
    return {};
  });
}

occlResult_t occlGatherv(const void *sendBuffer, uint64_t sendCount, void *recvBuffer,
                         const uint64_t *recvCounts, const uint64_t *recvDisplacements,
                         occlDataType_t dataType, uint32_t root, occlComm_t comm,
                         CUstream_st *stream) {
  return runCall("occlGatherv", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    if (Status checked = checkRoot(transfers, root); !checked.ok())
      return checked;
    // Ranks other than the root have one block and give no counts.
    if (transfers.rank() != root) {
      transfers.send(root, sendBuffer, 0, sendCount);
      return {};
    }
    if (!recvCounts || !recvDisplacements)
      return invalid("recvCounts and recvDisplacements must not be NULL on the root");
    transfers.keep(sendBuffer, 0, sendCount, recvBuffer, recvDisplacements[root], recvCounts[root]);
    for (uint32_t from = 0; from < transfers.numRanks(); ++from)
      if (from != root)
        transfers.receive(from, recvBuffer, recvDisplacements[from], recvCounts[from]);
    return {};
  });
}

occlResult_t occlScatterv(const void *sendBuffer, const uint64_t *sendCounts,
                          const uint64_t *sendDisplacements, void *recvBuffer, uint64_t recvCount,
                          occlDataType_t dataType, uint32_t root, occlComm_t comm,
                          CUstream_st *stream) {
  return runCall("occlScatterv", comm, dataType, stream, [&](Transfers &transfers) -> Status {
    if (Status checked = checkRoot(transfers, root); !checked.ok())
      return checked;
    // Ranks other than the root receive one block and give no counts.
    if (transfers.rank() != root) {
      transfers.receive(root, recvBuffer, 0, recvCount);
      return {};
    }
    if (!sendCounts || !sendDisplacements)
      return invalid("sendCounts and sendDisplacements must not be NULL on the root");
    transfers.keep(sendBuffer, sendDisplacements[root], sendCounts[root], recvBuffer, 0, recvCount);
    for (uint32_t to = 0; to < transfers.numRanks(); ++to)
      if (to != root)
        transfers.send(to, sendBuffer, sendDisplacements[to], sendCounts[to]);
    return {};
  });
}
