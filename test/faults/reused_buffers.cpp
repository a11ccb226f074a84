#include "test/faults/reused_buffers.h"

#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <utility>

namespace occl::communicator::testing {

namespace {

constexpr int32_t kReused = -0x11111112; // nothing that is exchanged

int32_t valueOf(uint32_t rank, uint32_t round, uint64_t element) {
  return static_cast<int32_t>((element * 7 + rank * 1000003 + round * 3001) & 0xfffffff);
}

plan::Plan inLines(plan::Plan plan) {
  plan.protocol = plan::Protocol::LL128;
  return plan;
}

} // namespace

Exchange::Exchange(uint64_t id, PlanHandle plan, Kind kind, uint64_t count, Memory memory)
    : id(id), plan(std::move(plan)), kind(kind), count(count), memory(memory) {}

occlResult_t Exchange::enter(occlComm_t newComm) {
  comm = newComm;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &numRanks);
  for (int i : {0, 1}) {
    void *buffer = nullptr;
    if (memory == Memory::Private) {
      own[i].resize(count);
      buffer = own[i].data();
    } else if (occlResult_t result = occlMemAlloc(comm, count * sizeof(int32_t), &buffer);
               result != occlSuccess) {
      return result;
    }
    (i == 0 ? input : output) = static_cast<int32_t *>(buffer);
  }
  return occlSuccess;
}

void Exchange::fill(uint32_t newRound) {
  round = newRound;
  isReused = false;
  for (uint64_t i = 0; i < count; ++i)
    input[i] = valueOf(rank, round, i);
  std::fill_n(output, count, -1);
}

occlCall_t Exchange::given() const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan.get();
  call.sendBuffer = input;
  call.recvBuffer = output;
  call.count = count;
  call.dataType = occlInt32;
  call.id = id;
  return call;
}

occlResult_t Exchange::call() {
  const occlCall_t what = given();
  return occlCall(comm, &what, nullptr);
}

/// Again as long as a peer that is late holds what it takes.
occlResult_t Exchange::start(occlRequest_t *request) {
  const occlCall_t what = given();
  occlResult_t result = occlAgain;
  while ((result = occlStart(comm, &what, nullptr, nullptr, request)) == occlAgain)
    yieldProcessor();
  return result;
}

occlResult_t Exchange::wait(occlRequest_t request) { return occlWait(comm, request); }

int32_t Exchange::expected(uint64_t element) const {
  if (kind == Kind::BroadcastOfRank0)
    return valueOf(0, round, element);
  uint32_t sum = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    sum += static_cast<uint32_t>(valueOf(r, round, element));
  return static_cast<int32_t>(sum);
}

std::string Exchange::reuse(occlResult_t result) {
  uint64_t wrong = 0, last = 0;
  for (uint64_t i = 0; result == occlSuccess && i < count; ++i)
    if (output[i] != expected(i)) {
      ++wrong;
      last = i;
    }
  std::string text;
  if (wrong != 0)
    text = "success with wrong data: collective " + std::to_string(id) + ", round " +
           std::to_string(round) + ", rank " + std::to_string(rank) + ": " + std::to_string(wrong) +
           " of " + std::to_string(count) + " elements, the last is " + std::to_string(last) +
           " with " + std::to_string(output[last]);
  std::fill_n(input, count, kReused);
  std::fill_n(output, count, kReused);
  isReused = true;
  return text;
}

std::string Exchange::findForeign() const {
  for (const int32_t *buffer : {input, output})
    for (uint64_t i = 0; isReused && i < count; ++i)
      if (buffer[i] != kReused)
        return "stored to after the call had returned: collective " + std::to_string(id) +
               ", rank " + std::to_string(rank) + (buffer == input ? ", input " : ", output ") +
               std::to_string(i) + " is " + std::to_string(buffer[i]);
  return {};
}

std::vector<Exchange> exchangesOfAllKinds(uint32_t numRanks) {
  using namespace plan::testing;
  using Kind = Exchange::Kind;
  using Memory = Exchange::Memory;
  std::vector<Exchange> all;
  all.emplace_back(0, handleOf(chainBroadcast(numRanks, 2)), Kind::BroadcastOfRank0, 1 << 17,
                   Memory::Private);
  all.emplace_back(1, handleOf(ringAllReduce(numRanks)), Kind::AllReduce, 1 << 16, Memory::Shared);
  all.emplace_back(2, handleOf(directAllReduce(numRanks)), Kind::AllReduce, 1 << 17,
                   Memory::Shared);
  all.emplace_back(3, handleOf(inLines(oneShotAllReduce(numRanks))), Kind::AllReduce, 30,
                   Memory::Private);
  return all;
}

namespace {

constexpr uint32_t kFillings = 3; // of a round

/// The last one, which is in lines, kFillings times: so it comes into the lane
/// (runtime/sched/lane_run.h).
std::string exchangeInTurn(std::vector<Exchange> &all, uint32_t round, occlResult_t &result) {
  for (Exchange &each : all) {
    result = each.call();
    if (std::string wrong = each.reuse(result); !wrong.empty() || result != occlSuccess)
      return wrong;
  }
  for (uint32_t again = 1; again < kFillings; ++again) {
    all.back().fill(round * kFillings + again);
    result = all.back().call();
    if (std::string wrong = all.back().reuse(result); !wrong.empty() || result != occlSuccess)
      return wrong;
  }
  return {};
}

/// From the `first` one on; who waits, waits in order.
std::string exchangeTogether(std::vector<Exchange> &all, size_t first, occlResult_t &result) {
  std::vector<std::pair<Exchange *, occlRequest_t>> open;
  for (size_t i = 0; i < all.size() && result == occlSuccess; ++i) {
    Exchange &next = all[(first + i) % all.size()];
    occlRequest_t request = 0;
    result = next.start(&request);
    if (result == occlSuccess)
      open.emplace_back(&next, request);
  }
  std::string wrong;
  for (auto [each, request] : open) {
    occlResult_t ended = each->wait(request);
    std::string found = each->reuse(ended);
    wrong = wrong.empty() ? found : wrong;
    result = result == occlSuccess ? ended : result;
  }
  return wrong;
}

} // namespace

std::string exchange(occlComm_t comm, std::vector<Exchange> &all, uint32_t rounds,
                     occlResult_t &result) {
  uint32_t rank = 0;
  occlCommRank(comm, &rank);
  for (Exchange &each : all)
    each.forget();
  for (Exchange &each : all)
    if ((result = each.enter(comm)) != occlSuccess)
      return {};
  for (uint32_t round = 0; round < rounds && result == occlSuccess; ++round) {
    for (Exchange &each : all)
      each.fill(round * kFillings);
    std::string wrong = round % 2 == 0 ? exchangeInTurn(all, round, result)
                                       : exchangeTogether(all, rank + round, result);
    if (!wrong.empty())
      return wrong;
  }
  return {};
}

} // namespace occl::communicator::testing
