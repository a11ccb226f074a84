// Runs one call of a collective on ranks that are threads of this process, through the C interface.
#pragma once

#include "test/end_to_end/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace occl::test {

/// Communicators of all ranks of a group, destroyed with it.
class ThreadGroup {
public:
  explicit ThreadGroup(uint32_t ranks, occlConfig_t config = OCCL_CONFIG_INITIALIZER)
      : comms(ranks) {
    result = occlCommInitAll(comms.data(), ranks, &config);
  }
  ~ThreadGroup() {
    if (result == occlSuccess)
      for (occlComm_t comm : comms)
        occlCommDestroy(comm);
  }
  ThreadGroup(const ThreadGroup &) = delete;
  ThreadGroup &operator=(const ThreadGroup &) = delete;

  /// Runs body(rank, communicator) on a thread for each rank.
  template <class Body> void onEachRank(Body body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < comms.size(); ++rank)
      threads.emplace_back([&, rank] { body(rank, comms[rank]); });
    for (std::thread &thread : threads)
      thread.join();
  }

  std::vector<occlComm_t> comms;
  occlResult_t result;
};

/// A rank's buffers for a case. In place, they overlap as NCCL has it.
struct Buffers {
  Buffers(const Case &call, uint32_t rank, bool inPlace) : input(call.input(rank)) {
    auto size = static_cast<int64_t>(sizeOf(call.type));
    int64_t outputBytes = static_cast<int64_t>(call.outputElements(rank)) * size;
    int64_t offset = inPlace ? call.inPlaceOffset(rank) * size : outputBytes;
    int64_t outputBegin = std::max<int64_t>(0, -offset);
    int64_t inputBegin = outputBegin + offset;
    int64_t inputEnd = inputBegin + static_cast<int64_t>(input.size());
    memory.assign(static_cast<size_t>(std::max(outputBegin + outputBytes, inputEnd)), 0xA5);
    send = memory.data() + inputBegin;
    receive = memory.data() + outputBegin;
    if (!input.empty())
      std::memcpy(send, input.data(), input.size());
  }
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;

  Bytes received(const Case &call, uint32_t rank) const {
    return Bytes(receive, receive + call.outputElements(rank) * sizeOf(call.type));
  }

  Bytes sent() const { return Bytes(send, send + input.size()); }

  const Bytes input; // before the call
  Bytes memory;      // holds both buffers
  uint8_t *send, *receive;
};

/// Executes the case with a plan and buffers, in the communicator's sequence of calls.
inline occlResult_t callCase(occlComm_t comm, occlPlan_t plan, const Case &what,
                             const Buffers &buffers) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan;
  call.sendBuffer = buffers.send;
  call.recvBuffer = buffers.receive;
  call.count = what.count;
  call.dataType = what.type;
  call.op = what.op;
  call.name = what.collective.c_str();
  return occlCall(comm, &call, nullptr);
}

} // namespace occl::test
