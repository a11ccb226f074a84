// One collective on one rank of a communicator on devices, against the reference.
#pragma once

#include "plan/model/plan.h"
#include "runtime/api/occl.h"
#include "runtime/base/data_type.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::gpu_test {

/// How invocations are executed: as calls in a stream, or twice as often from a graph, replayed
/// beside them; or registered, and submitted to the resident daemon, at once or in the stream's
/// order.
enum class Way { Eager, Graph, Submitted, Streamed };

struct Case {
  uint64_t id = 1;
  plan::Plan plan;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  /// Bytes of buffers from an address that is aligned.
  uint64_t misalignment = 0;
  /// Buffers of occlMemAlloc.
  bool isRegistered = false;
  /// Input and output are one buffer, as the plan says.
  bool inPlace = false;
  Way way = Way::Eager;

  std::string name() const;
};

/// A rank's buffers, stream and device; made before anything runs, as freeing device memory waits
/// for what runs.
class RankOnDevice {
public:
  /// The device is current; `comm` is one of it.
  RankOnDevice(occlComm_t comm, uint32_t rank);
  ~RankOnDevice();
  RankOnDevice(const RankOnDevice &) = delete;
  RankOnDevice &operator=(const RankOnDevice &) = delete;

  /// Runs the case some times on this rank, as all ranks do; `meet` returns when all have called
  /// it. "" or what is wrong.
  std::string run(const Case &what, const std::function<void()> &meet);

  /// Waits for the stream, at most 30 seconds. "" or what is wrong.
  std::string synchronize();
  cudaStream_t stream() const { return work; }
  /// 1 MiB each, of occlMemAlloc or of CUDA.
  char *input(bool isRegistered) const { return inputs[isRegistered]; }
  char *output(bool isRegistered) const { return outputs[isRegistered]; }

private:
  /// Where a case's buffers lie.
  struct Places {
    char *input, *output;
    char *begin; // of all that is spoilt before an invocation: kBufferBytes
  };
  Places placesOf(const Case &what) const;
  /// When the stream has ended: of all of the buffer that is no input only the output has changed.
  std::string check(const Case &what, const std::vector<char> &expected);
  /// As before the first invocation: the input is there, and what else may be written is spoilt.
  std::string prepare(const Case &what);
  std::string runEager(const Case &what, const std::vector<char> &expected);
  std::string runStreamed(const Case &what, const std::vector<char> &expected);
  std::string runSubmitted(const Case &what, const std::vector<char> &expected);
  std::string runGraph(const Case &what, const std::vector<char> &expected,
                       const std::function<void()> &meet);
  std::string call(const Case &what);

  occlComm_t comm;
  const uint32_t rank;
  cudaStream_t work = nullptr;
  char *inputs[2] = {nullptr, nullptr}, *outputs[2] = {nullptr, nullptr};
  char *pristine = nullptr; // the case's input, to be copied to where it is needed
  uint64_t inputBytes = 0;
};

/// Whether all-reduces work, with messages and with direct access, among all ranks of a
/// communicator, each of which calls it with what it has there. "" or what is wrong.
std::string runAllReduces(RankOnDevice &onDevice, uint32_t numRanks);

/// Whether plans may access other ranks' buffers: unless the test has data go through host memory
/// or between machines (environment.cpp).
bool areBuffersShared();

/// All collectives, protocols and shapes that ranks are tried with, of floats.
std::vector<Case> casesFor(uint32_t numRanks);
/// All collectives with every type and operation, in and out of place, unaligned.
std::vector<Case> typeCasesFor(uint32_t numRanks);

/// Those of them that can be submitted, all of which are.
std::vector<Case> submittedCasesFor(uint32_t numRanks);

/// A call of the communicator in the stream. timeoutMs: 0: the communicator's.
occlResult_t callCase(occlComm_t comm, const Case &what, const void *input, void *output,
                      cudaStream_t stream, uint32_t timeoutMs = 0);
/// The same: "" or what is wrong.
std::string callInStream(occlComm_t comm, const Case &what, const void *input, void *output,
                         cudaStream_t stream, uint32_t timeoutMs = 0);

/// The case is known by its id to those below; plans are kept until the process ends. Any thread.
void remember(occlComm_t comm, const Case &what, uint32_t timeoutMs = 20000);
/// occlStart of a case that is known, as its id.
occlResult_t startKnown(occlComm_t comm, uint64_t id, const void *input, void *output,
                        occlCallback_t callback, void *user, occlRequest_t *request,
                        const cudaStream_t *after = nullptr);
/// The same, and occlWait.
occlResult_t runKnown(occlComm_t comm, uint64_t id, const void *input, void *output);
/// As the next work of a stream: occlStart after it, and occlStreamWait. request may be null.
occlResult_t startInStream(occlComm_t comm, uint64_t id, const void *input, void *output,
                           cudaStream_t stream, occlCallback_t callback, void *user,
                           occlRequest_t *request);

/// Device memory of a rank in these tests is small: several share one device.
occlConfig_t smallConfig();

} // namespace occl::gpu_test
