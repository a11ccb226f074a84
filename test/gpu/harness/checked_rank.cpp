#include "test/gpu/harness/checked_rank.h"

#include <chrono>
#include <thread>

namespace occl::gpu_test {

CheckedCollective checkedOf(const Case &what, Expected expected) {
  CheckedCollective checked;
  checked.inputElements =
      uint64_t(what.plan.ranks[0].inputChunks / what.plan.partChunks) * what.count;
  checked.count = what.count;
  checked.expected = expected;
  checked.elements = what.type == DataType::Float32 ? Elements::Floats : Elements::Words;
  return checked;
}

CheckedRank::CheckedRank(const std::vector<occlComm_t> &comms, uint32_t rank, uint32_t numRanks,
                         uint32_t numStreams, uint64_t bytes, bool isRegistered)
    : rank(rank), numRanks(numRanks), isRegistered(isRegistered), lanes(numStreams) {
  loadDataKernels();
  for (size_t s = 0; s < lanes.size(); ++s) {
    Lane &lane = lanes[s];
    lane.comm = comms[comms.size() == 1 ? 0 : s];
    cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
    for (void **buffer : {&lane.input, &lane.output})
      if (isRegistered)
        occlMemAlloc(lane.comm, bytes, buffer);
      else
        cudaMalloc(buffer, bytes);
  }
  cudaMalloc(reinterpret_cast<void **>(&differences), numStreams * sizeof(Differences));
  cudaMemset(differences, 0, numStreams * sizeof(Differences));
  cudaDeviceSynchronize();
}

CheckedRank::~CheckedRank() {
  for (Lane &lane : lanes) {
    cudaStreamDestroy(lane.stream);
    for (void *buffer : {lane.input, lane.output})
      if (isRegistered)
        occlMemFree(lane.comm, buffer);
      else
        cudaFree(buffer);
  }
  cudaFree(differences);
}

std::string CheckedRank::run(uint32_t stream, const Case &what, const CheckedCollective &checked,
                             uint64_t key) {
  const Lane &lane = lanes[stream];
  if (lane.input == nullptr || lane.output == nullptr)
    return "no memory for buffers";
  const DataOf data = {key, checked.elements};
  int error = fillInput(lane.stream, lane.input, checked.inputElements, data, rank);
  std::string wrong;
  if (error == cudaSuccess)
    wrong = callInStream(lane.comm, what, lane.input, lane.output, lane.stream);
  if (error == cudaSuccess && wrong.empty())
    error = compareOutput(lane.stream, lane.output, checked.count, data, checked.expected, rank,
                          numRanks, differences + stream);
  return error == cudaSuccess ? wrong : cudaGetErrorString(static_cast<cudaError_t>(error));
}

std::string CheckedRank::finish() {
  using Clock = std::chrono::steady_clock;
  const auto late = Clock::now() + std::chrono::minutes(1);
  for (const Lane &lane : lanes)
    for (cudaError_t state; (state = cudaStreamQuery(lane.stream)) != cudaSuccess;) {
      if (state != cudaErrorNotReady)
        return cudaGetErrorString(state);
      if (Clock::now() > late)
        return std::string("a stream does not end. ") + occlCommGetLastError(lane.comm);
      std::this_thread::yield();
    }
  for (const Lane &lane : lanes)
    if (*occlCommGetLastError(lane.comm) != 0)
      return occlCommGetLastError(lane.comm);
  std::vector<Differences> found(lanes.size());
  cudaError_t error = cudaMemcpyAsync(found.data(), differences, found.size() * sizeof(Differences),
                                      cudaMemcpyDeviceToHost, lanes[0].stream);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(lanes[0].stream);
  if (error != cudaSuccess)
    return cudaGetErrorString(error);
  for (size_t s = 0; s < found.size(); ++s)
    if (found[s].number != 0)
      return "rank " + std::to_string(rank) + ", stream " + std::to_string(s) + ": " +
             std::to_string(found[s].number) + " elements are wrong; one at " +
             std::to_string(found[s].position) + " is " + std::to_string(found[s].found) +
             " instead of " + std::to_string(found[s].expected);
  return "";
}

} // namespace occl::gpu_test
