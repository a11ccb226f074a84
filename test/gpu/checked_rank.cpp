#include "test/gpu/checked_rank.h"

#include <chrono>
#include <thread>

namespace occl::gpu_test {

CheckedCollective checkedOf(const Case &what, Expected expected) {
  CheckedCollective checked;
  checked.id = what.id;
  checked.inputElements =
      uint64_t(what.plan.ranks[0].inputChunks / what.plan.partChunks) * what.count;
  checked.count = what.count;
  checked.expected = expected;
  checked.elements = what.type == DataType::Float32 ? Elements::Floats : Elements::Words;
  return checked;
}

CheckedRank::CheckedRank(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint32_t numStreams,
                         uint64_t bytes, bool isRegistered)
    : comm(comm), rank(rank), numRanks(numRanks), isRegistered(isRegistered), lanes(numStreams) {
  loadDataKernels();
  for (Lane &lane : lanes) {
    cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
    for (void **buffer : {&lane.input, &lane.output})
      if (isRegistered)
        occlMemAlloc(comm, bytes, buffer);
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
        occlMemFree(comm, buffer);
      else
        cudaFree(buffer);
  }
  cudaFree(differences);
}

std::string CheckedRank::run(uint32_t stream, const CheckedCollective &what, uint64_t key) {
  return between(stream, what, key, [&](const Lane &lane) -> std::string {
    return occlEnqueue(comm, what.id, lane.input, lane.output, lane.stream) == occlSuccess
               ? ""
               : std::string("occlEnqueue: ") + occlGetLastError();
  });
}

std::string CheckedRank::call(uint32_t stream, const Case &what, const CheckedCollective &checked,
                              uint64_t key) {
  return between(stream, checked, key, [&](const Lane &lane) {
    return callInStream(comm, what, lane.input, lane.output, lane.stream);
  });
}

/// put(lane): puts the collective between what makes its input and what looks at its output.
template <class Put>
std::string CheckedRank::between(uint32_t stream, const CheckedCollective &what, uint64_t key,
                                 const Put &put) {
  const Lane &lane = lanes[stream];
  if (lane.input == nullptr || lane.output == nullptr)
    return "no memory for buffers";
  const DataOf data = {key, what.elements};
  int error = fillInput(lane.stream, lane.input, what.inputElements, data, rank);
  std::string wrong = error == cudaSuccess ? put(lane) : "";
  if (error == cudaSuccess && wrong.empty())
    error = compareOutput(lane.stream, lane.output, what.count, data, what.expected, rank, numRanks,
                          differences + stream);
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
        return std::string("a stream does not end. ") + occlCommGetLastError(comm);
      std::this_thread::yield();
    }
  if (*occlCommGetLastError(comm) != 0)
    return occlCommGetLastError(comm);
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
