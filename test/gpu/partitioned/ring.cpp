#include "test/gpu/partitioned/ring.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace occl::gpu_test {

std::string RingShape::name() const {
  return std::to_string(sent) + " partitions to " + std::to_string(received) + " of " +
         std::to_string(bytes) + " bytes, " + std::to_string(perMessage) + " a message";
}

Ring::Ring(occlComm_t comm, uint32_t rank, uint32_t numRanks, RingShape shape, int64_t tag)
    : comm(comm), rank(rank), numRanks(numRanks), shape(shape), tag(tag) {
  const uint64_t most = std::max<uint64_t>(shape.bytes, 16);
  void *memory = nullptr;
  expect(occlMemAlloc(comm, most, &memory), "occlMemAlloc");
  place = static_cast<char *>(memory);
  expect(cudaMalloc(&source, most), "cudaMalloc");
  expect(cudaMalloc(&different, sizeof(uint64_t)), "cudaMalloc");
  expect(cudaMemset(different, 0, sizeof(uint64_t)), "cudaMemset");
  expect(loadPartUsers(), "loading kernels");
  make(shape);
}

void Ring::make(RingShape other) {
  shape = other;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.partitionsPerMessage = shape.perMessage;
  expect(occlPsendInit(comm, source, static_cast<int64_t>(shape.sent), shape.bytes / shape.sent,
                       occlUint8, (rank + 1) % numRanks, tag, &config, &send),
         "occlPsendInit");
  expect(occlPrecvInit(comm, place, static_cast<int64_t>(shape.received),
                       shape.bytes / shape.received, occlUint8, (rank + numRanks - 1) % numRanks,
                       tag, nullptr, &receive),
         "occlPrecvInit");
}

Ring::~Ring() {
  if (comm)
    occlMemFree(comm, place);
  cudaFree(source);
  cudaFree(different);
}

void Ring::expect(occlResult_t result, const char *what) {
  if (result != occlSuccess && text.empty())
    text = shape.name() + ": " + what + ": " + occlGetLastError();
}

void Ring::expect(int error, const char *what) {
  if (error != cudaSuccess && text.empty())
    text = shape.name() + ": " + what + ": " + cudaGetErrorString(static_cast<cudaError_t>(error));
}

occlPartDevice_t Ring::handle(occlPart_t part) {
  occlPartDevice_t made = {};
  expect(occlPdevice(part, &made), "occlPdevice");
  return made;
}

void Ring::start(cudaStream_t stream) {
  expect(cudaMemsetAsync(place, 0x5a, shape.bytes, stream), "spoiling");
  expect(occlPstartOn(receive, stream), "occlPstartOn");
  expect(occlPstartOn(send, stream), "occlPstartOn");
}

void Ring::produce(cudaStream_t stream, uint64_t epoch, Marker marker) {
  if (!send)
    return; // there is an error already
  expect(launchProduce(stream, handle(send), out(), ownKey(epoch), marker), "launching");
}

void Ring::waitAndCheck(cudaStream_t stream, uint64_t epoch) {
  expect(occlPwaitOn(receive, stream), "occlPwaitOn");
  expect(occlPwaitOn(send, stream), "occlPwaitOn");
  expect(launchCheck(stream, in(), theirKey(epoch), different), "launching");
}

std::string Ring::finish(cudaStream_t stream) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  cudaError_t state = cudaErrorNotReady;
  while (state == cudaErrorNotReady && std::chrono::steady_clock::now() < end) {
    state = cudaStreamQuery(stream);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (state == cudaErrorNotReady && text.empty())
    text = shape.name() + ": the stream does not end; " + occlCommGetLastError(comm);
  if (!text.empty())
    return text;
  expect(state, "the stream");
  uint64_t number = 0;
  expect(cudaMemcpyAsync(&number, different, sizeof number, cudaMemcpyDeviceToHost, stream),
         "copying");
  expect(cudaStreamSynchronize(stream), "the stream");
  if (number != 0 && text.empty())
    text = shape.name() + ", rank " + std::to_string(rank) + ": " + std::to_string(number) +
           " bytes differ; " + occlCommGetLastError(comm);
  return text;
}

void Ring::free() {
  expect(occlPfree(std::exchange(send, nullptr)), "occlPfree");
  expect(occlPfree(std::exchange(receive, nullptr)), "occlPfree");
}

} // namespace occl::gpu_test
