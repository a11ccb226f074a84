#include "tools/occl-run/plan_rank.h"

#include "tools/occl-run/elements.h"

#include <algorithm>
#include <fmt/core.h>

namespace occl::run {
namespace {

constexpr uint64_t kId = 1;

} // namespace

PlanRank::PlanRank(const PlanRunOptions &options, const plan::Plan &plan, uint32_t rank,
                   Scoreboard &scoreboard)
    : options(options), reference(plan, options.count, options.type, options.op, options.seed),
      rank(rank), scoreboard(scoreboard), inputElements(reference.inputElements(rank)),
      outputElements(reference.outputElements(rank)) {
  // One piece of memory for both buffers. Out of place, the input lies behind the output.
  const uint64_t size = elementBytes(options.type);
  const int64_t offset = reference.inPlaceOffset(rank);
  const auto inputLength = static_cast<int64_t>(inputElements);
  const auto outputLength = static_cast<int64_t>(outputElements);
  int64_t inputBegin = outputLength, outputBegin = 0, end = inputLength + outputLength;
  // In place they overlap: the input begins `offset` elements behind the output, or before it if
  // that is negative, and the memory begins at whichever is first.
  if (options.inPlace) {
    outputBegin = std::max<int64_t>(0, -offset);
    inputBegin = outputBegin + offset;
    end = std::max(outputBegin + outputLength, inputBegin + inputLength);
  }
  memory.resize(static_cast<uint64_t>(end) * size);
  input = memory.data() + static_cast<uint64_t>(inputBegin) * size;
  output = memory.data() + static_cast<uint64_t>(outputBegin) * size;
  // What has to come out, computed before anything is measured.
  if (options.check)
    expected = reference.output(rank);
}

bool PlanRank::ok(occlResult_t result, const char *what) const {
  if (result == occlSuccess)
    return true;
  fmt::print(stderr, "occl-run: rank {}: {}: {}: {}\n", rank, what, occlGetErrorString(result),
             occlGetLastError());
  return false;
}

void PlanRank::fillInput() {
  std::fill(memory.begin(), memory.end(), std::byte{0x55});
  for (uint64_t element = 0; element < inputElements; ++element)
    storeElement(options.type, input, element, reference.input(rank, element));
}

void PlanRank::check(uint32_t iteration) {
  // Elements that the collective does not promise are not compared.
  uint64_t wrong = 0;
  for (uint64_t element = 0; element < expected.size(); ++element) {
    if (!expected[element])
      continue;
    double got = loadElement(options.type, output, element);
    if (isCorrect(options.type, *expected[element], got))
      continue;
    // One example is printed, and the rest counted: a wrong plan is wrong in millions.
    if (wrong++ == 0 && !reportedWrong)
      fmt::print(stderr, "occl-run: rank {}, iteration {}: element {} is {}, expected {}\n", rank,
                 iteration, element, got, *expected[element]);
  }
  reportedWrong = reportedWrong || wrong > 0;
  scoreboard.addWrong(wrong);
}

occlCall_t PlanRank::callOf(occlPlan_t plan) const {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan;
  call.sendBuffer = input;
  call.recvBuffer = output;
  call.count = options.count;
  call.dataType = options.type;
  call.op = options.op;
  call.id = kId;
  call.name = options.plan.c_str();
  return call;
}

bool PlanRank::iterate(occlComm_t comm, occlPlan_t plan) {
  // Filled once before the loop, so that pages are there before anything is measured.
  const occlCall_t call = callOf(plan);
  fillInput();
  for (uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
    // In place the input is overwritten by each iteration.
    if (options.inPlace || options.check)
      fillInput();
    // All ranks begin together, so that waiting for one another is not measured as transfer.
    if (!scoreboard.barrier())
      return false;
    auto begin = std::chrono::steady_clock::now();
    occlRequest_t request = 0;
    if (!ok(occlStart(comm, &call, nullptr, nullptr, &request), "starting"))
      return false;
    if (!ok(occlWait(comm, request), "waiting"))
      return false;
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    scoreboard.setSeconds(rank, iteration, seconds.count());
    // After the time was taken.
    if (options.check)
      check(iteration);
  }
  return true;
}

bool PlanRank::run(occlComm_t comm) {
  occlPlan_t plan = nullptr;
  // Each rank loads the plan from the file: a communicator compares their hashes.
  bool success =
      ok(occlPlanLoad(options.plan.c_str(), &plan), "loading the plan") && iterate(comm, plan);
  if (!success)
    scoreboard.fail();
  occlPlanDestroy(plan);
  return success;
}

} // namespace occl::run
