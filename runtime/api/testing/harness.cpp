#include "runtime/api/testing/harness.h"

#include "runtime/api/capi/handles.h"
#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace occl::communicator::testing {

namespace conformance = interpreter::conformance;

Ranks::Ranks(uint32_t numRanks, occlConfig_t config) : comms(numRanks, nullptr) {
  occlResult_t result = occlCommInitAll(comms.data(), numRanks, &config);
  EXPECT_EQ(result, occlSuccess) << occlGetLastError();
  if (result != occlSuccess)
    std::abort(); // the tests that follow would use no communicator
}

Ranks::~Ranks() {
  for (uint32_t r = 0; r < size(); ++r)
    destroy(r);
}

void Ranks::destroy(uint32_t rank) {
  EXPECT_EQ(occlCommDestroy(std::exchange(comms[rank], nullptr)), occlSuccess);
}

void Ranks::run(const std::function<void(uint32_t)> &body, std::chrono::seconds limit) const {
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t running = size();
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < size(); ++r)
    threads.emplace_back([&, r] {
      body(r);
      std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    });
  {
    std::unique_lock lock(mutex);
    if (!ended.wait_for(lock, limit, [&] { return running == 0; })) {
      for (occlComm_t comm : comms) {
        char text[8192];
        if (comm && occlCommReport(comm, text, sizeof text, nullptr) == occlSuccess)
          std::fprintf(stderr, "%s%s\n", text, occlCommGetLastError(comm));
      }
      std::fprintf(stderr, "the ranks hang: %u of %u have not returned\n", running, size());
      std::abort();
    }
  }
  for (std::thread &thread : threads)
    thread.join();
}

PlanHandle handleOf(plan::Plan plan) {
  return PlanHandle(adoptPlan(std::move(plan)), occlPlanDestroy);
}

Job::Job(uint64_t id, PlanHandle planHandle, uint64_t count, DataType type, ReduceOp op)
    : collective(id), handle(std::move(planHandle)), count(count), type(type), op(op),
      label(handle->plan->name + " of " + std::to_string(count)) {
  fill(id);
}

void Job::fill(uint64_t seed) {
  const plan::Plan &plan = *handle->plan;
  std::vector<conformance::Numbers> numbers;
  inputs.clear();
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    uint64_t elements = plan.ranks[r].inputChunks / plan.partChunks * count;
    numbers.push_back(conformance::exactInput(elements, type, op, seed * plan.numRanks + r));
    if (op == ReduceOp::Avg && isFloat(type)) // each is divided before the sum
      numbers.back() = conformance::multiplied(numbers.back(), plan.numRanks, type);
    inputs.push_back(conformance::encode(numbers.back(), type));
  }
  outputs.clear();
  expected.clear();
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    expected.push_back(conformance::encode(
        conformance::expectedOutput(plan.collective, numbers, r, plan.root, count, type, op),
        type));
    uint64_t elements = plan.ranks[r].outputChunks / plan.partChunks * count;
    outputs.emplace_back(elements * sizeOf(type), char{0x55});
  }
}

occlResult_t Job::submit(occlComm_t comm, uint32_t rank, occlRequest_t *request,
                         occlCallback_t callback, void *user) {
  return submitOn(comm, input(rank), output(rank), request, callback, user);
}

occlResult_t Job::submitOn(occlComm_t comm, const void *onInput, void *onOutput,
                           occlRequest_t *request, occlCallback_t callback, void *user) const {
  const occlCall_t given = callOn(onInput, onOutput);
  return occlStart(comm, &given, callback, user, request);
}

occlResult_t Job::run(occlComm_t comm, uint32_t rank) {
  return runOn(comm, input(rank), output(rank));
}

occlResult_t Job::runOn(occlComm_t comm, const void *onInput, void *onOutput) const {
  const occlCall_t given = callOn(onInput, onOutput);
  return occlCall(comm, &given, nullptr);
}

occlCall_t Job::callOn(const void *onInput, void *onOutput) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = handle.get();
  call.sendBuffer = onInput;
  call.recvBuffer = onOutput;
  call.count = count;
  call.dataType = static_cast<occlDataType_t>(type);
  call.op = static_cast<occlRedOp_t>(op);
  call.id = collective;
  call.name = label.c_str();
  call.callbacksNeverBlock = callbackKind == CallbackKind::NeverBlocks;
  return call;
}

void Job::clear(uint32_t rank) { std::ranges::fill(outputs[rank], char{0x55}); }

std::string Job::check(uint32_t rank) const {
  const std::vector<char> &got = outputs[rank], &want = expected[rank];
  if (want.empty())
    return {};
  auto differs = std::mismatch(want.begin(), want.end(), got.begin(), got.end());
  if (differs.first == want.end())
    return {};
  return label + " on rank " + std::to_string(rank) + ": wrong from byte " +
         std::to_string(differs.first - want.begin()) + " of " + std::to_string(want.size());
}

std::vector<uint32_t> latinOrder(uint32_t numJobs, uint32_t rank, uint32_t iteration) {
  std::vector<uint32_t> order;
  for (uint32_t j = 0; j < numJobs; ++j)
    order.push_back((j * (iteration % 2 ? numJobs - 1 : 1) + rank + iteration) % numJobs);
  return order;
}

} // namespace occl::communicator::testing
