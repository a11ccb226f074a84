#include "test/gpu/partitioned/collective_request.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace occl::gpu_test {

std::string CollectiveShape::name() const {
  return "kind " + std::to_string(kind) + " of " + std::to_string(count) + " words in " +
         std::to_string(sendPartitions) + " to " + std::to_string(recvPartitions) +
         " partitions, " + std::to_string(rounds) + " rounds" + (isInPlace ? ", in place" : "");
}

CollectiveRequest::CollectiveRequest(occlComm_t comm, uint32_t rank, uint32_t numRanks,
                                     CollectiveShape shape)
    : comm(comm), rank(rank), numRanks(numRanks), shape(shape) {
  const uint64_t most = std::max<uint64_t>(shape.count * numRanks, 1) * sizeof(uint32_t);
  for (uint32_t **memory : {&input, &output, &seen})
    expect(cudaMalloc(memory, most), "cudaMalloc");
  expect(cudaMalloc(&missing, sizeof(uint64_t)), "cudaMalloc");
  expect(cudaMemset(missing, 0, sizeof(uint64_t)), "cudaMemset");
  expect(loadPartUsers(), "loading kernels");
  if (shape.isInPlace)
    std::swap(input, seen); // of which the latter is not the output's
  make();
}

void CollectiveRequest::make() {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = shape.kind;
  call.sendBuffer = in().data;
  call.recvBuffer = output;
  call.count = shape.count;
  call.dataType = occlUint32;
  call.op = occlSum;
  call.root = shape.root;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.rounds = shape.rounds;
  expect(occlPcollInit(comm, &call, shape.sendPartitions, shape.recvPartitions, &config, &part),
         "occlPcollInit");
}

CollectiveRequest::~CollectiveRequest() {
  for (uint32_t *memory : {input, output, seen})
    cudaFree(memory);
  cudaFree(missing);
}

/// In place an all-reduce's input is its output, an all-gather's its own part of that.
Words CollectiveRequest::in() const {
  uint32_t *data = shape.isInPlace ? output + inPlaceOffset(collective(), parts(), rank) : input;
  if (!needsInput(collective(), parts(), rank))
    return {data, 0, 0};
  return {data, inputSize(collective(), parts()), static_cast<uint64_t>(shape.sendPartitions)};
}

Words CollectiveRequest::out() const {
  if (!needsOutput(collective(), parts(), rank))
    return {output, 0, 0};
  return {output, outputSize(collective(), parts()), static_cast<uint64_t>(shape.recvPartitions)};
}

occlPartDevice_t CollectiveRequest::handle() {
  occlPartDevice_t made = {};
  if (part)
    expect(occlPdevice(part, &made), "occlPdevice");
  return made;
}

void CollectiveRequest::start(cudaStream_t stream) {
  if (!part)
    return; // there is an error already
  expect(
      cudaMemsetAsync(output, 0x5a, std::max<uint64_t>(out().words, 1) * sizeof(uint32_t), stream),
      "spoiling");
  expect(cudaMemsetAsync(seen, 0x5a, std::max<uint64_t>(out().words, 1) * sizeof(uint32_t), stream),
         "spoiling");
  expect(occlPstartOn(part, stream), "occlPstartOn");
  ++epoch;
}

void CollectiveRequest::produce(cudaStream_t stream, uint64_t first, uint64_t last,
                                uint64_t stride) {
  if (part && first < last)
    expect(launchProduceWords(stream, handle(), in(), keyOf(rank), first, last, stride),
           "launching");
}

void CollectiveRequest::wait(cudaStream_t stream) {
  if (part)
    expect(occlPwaitOn(part, stream), "occlPwaitOn");
}

void CollectiveRequest::take(cudaStream_t stream, uint64_t first, uint64_t last) {
  constexpr uint64_t kNanoseconds = 10'000'000'000;
  if (part && first < last)
    expect(launchTakeWords(stream, handle(), out(), seen, first, last, kNanoseconds, missing),
           "launching");
}

uint32_t CollectiveRequest::outputAt(uint64_t i) const {
  const plan::Goal goal = *goalOf(collective(), parts(), rank, i);
  if (!goal.ofAllRanks)
    return inputOf(goal.rank, goal.index);
  uint32_t sum = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    sum += inputOf(r, goal.index);
  return sum;
}

std::vector<uint32_t> CollectiveRequest::taken(cudaStream_t stream, const uint32_t *from,
                                               uint64_t words) {
  std::vector<uint32_t> got(words);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() > end) {
      expect(static_cast<int>(cudaErrorNotReady), "waiting for the stream");
      return got;
    }
    std::this_thread::yield();
  }
  expect(
      cudaMemcpyAsync(got.data(), from, words * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream),
      "copying");
  expect(cudaStreamSynchronize(stream), "copying");
  return got;
}

void CollectiveRequest::compare(const std::vector<uint32_t> &got, uint64_t begin, uint64_t end,
                                const char *what) {
  for (uint64_t i = begin; i < end && text.empty(); ++i)
    if (got[i] != outputAt(i))
      text = shape.name() + ", rank " + std::to_string(rank) + ", epoch " + std::to_string(epoch) +
             ": word " + std::to_string(i) + " of " + what + " is " + std::to_string(got[i]) +
             ", not " + std::to_string(outputAt(i));
}

void CollectiveRequest::check(cudaStream_t stream) {
  compare(taken(stream, output, out().words), 0, out().words, "the output");
}

void CollectiveRequest::checkSeen(cudaStream_t stream, uint64_t first, uint64_t last) {
  const std::vector<uint32_t> got = taken(stream, seen, out().words);
  uint64_t lacking = 0;
  expect(cudaMemcpy(&lacking, missing, sizeof lacking, cudaMemcpyDeviceToHost), "copying");
  if (lacking != 0 && text.empty())
    text = shape.name() + ": " + std::to_string(lacking) + " partitions have not arrived";
  const uint64_t per = out().perPartition();
  compare(got, std::min(first * per, out().words), std::min(last * per, out().words),
          "what had arrived");
}

void CollectiveRequest::free() {
  if (part)
    expect(occlPfree(part), "occlPfree");
  part = nullptr;
}

void CollectiveRequest::expect(occlResult_t result, const char *what) {
  if (result != occlSuccess && text.empty())
    text =
        shape.name() + ", rank " + std::to_string(rank) + ": " + what + ": " + occlGetLastError();
}

void CollectiveRequest::expect(int error, const char *what) {
  if (error != cudaSuccess && text.empty())
    text = shape.name() + ", rank " + std::to_string(rank) + ": " + what + ": " +
           cudaGetErrorString(static_cast<cudaError_t>(error));
}

} // namespace occl::gpu_test
