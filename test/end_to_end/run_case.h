// Runs one call of a collective on ranks that are threads of this process, through the C interface.
#pragma once

#include "test/end_to_end/reference.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace occl::test {

/// Communicators of all ranks of a group, destroyed with it.
class ThreadGroup {
public:
  explicit ThreadGroup(uint32_t ranks, occlConfig_t config = OCCL_CONFIG_INITIALIZER) : comms(ranks) {
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

/// A rank's buffers for a case. In place, the smaller of input and output lies within the larger, where NCCL has it.
struct Buffers {
  Buffers(const Case &call, uint32_t rank, bool inPlace) : input(call.input(rank)) {
    size_t outputBytes = call.outputElements(rank) * sizeOf(call.type);
    size_t partBytes = call.count * sizeOf(call.type);
    output.assign(inPlace ? std::max(outputBytes, input.size()) : outputBytes, 0xA5);
    send = input.data();
    receive = output.data();
    if (!inPlace)
      return;
    size_t offset = call.collective == "allgather" ? rank * partBytes : 0;
    if (!input.empty())
      std::memcpy(output.data() + offset, input.data(), input.size());
    send = output.data() + offset;
    if (call.collective == "reducescatter")
      receive = output.data() + rank * partBytes;
  }
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;

  Bytes received(const Case &call, uint32_t rank) const {
    return Bytes(receive, receive + call.outputElements(rank) * sizeOf(call.type));
  }

  Bytes input, output;
  uint8_t *send, *receive;
};

/// Registers the case's collective as `id` on a rank; the result of the call.
inline occlResult_t registerCase(occlComm_t comm, uint64_t id, occlPlan_t plan, const Case &call) {
  occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
  collective.id = id;
  collective.name = call.collective.c_str();
  collective.plans = &plan;
  collective.numPlans = 1;
  collective.count = call.count;
  collective.dataType = call.type;
  collective.op = call.op;
  return occlRegister(comm, &collective);
}

} // namespace occl::test
