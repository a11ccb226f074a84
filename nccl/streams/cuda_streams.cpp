// CUDA's streams. CUDA is looked for when the first communicator is made, so that a program that
// loads this library and makes none needs no CUDA.
#include "nccl/comm.h"
#include "nccl/streams/streams.h"

#include <dlfcn.h>
#include <string>

namespace occl::nccl {

namespace {

/// The functions of the CUDA runtime that are called here. Zero is success for all of them.
struct Cuda {
  int (*getDevice)(int *) = nullptr;
  int (*getDeviceCount)(int *) = nullptr;
  int (*malloc)(void **, size_t) = nullptr;
  int (*free)(void *) = nullptr;
  const char *(*errorString)(int) = nullptr;

  bool isThere() const { return getDevice && getDeviceCount && malloc && free && errorString; }
};

/// Rather the copy that the program has loaded: the current device is a copy's own.
Cuda load() {
  Cuda cuda;
  auto look = [&](void *library) {
    auto get = [&](const char *name, auto &function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    };
    get("cudaGetDevice", cuda.getDevice);
    get("cudaGetDeviceCount", cuda.getDeviceCount);
    get("cudaMalloc", cuda.malloc);
    get("cudaFree", cuda.free);
    get("cudaGetErrorString", cuda.errorString);
    return cuda.isThere();
  };
  if (look(RTLD_DEFAULT))
    return cuda;
  for (int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW})
    for (const char *name :
         {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"})
      if (void *library = dlopen(name, flags); library && look(library))
        return cuda;
  return {};
}

class CudaStreams : public StreamKind {
public:
  Outcome currentDevice(int &device) override {
    return call("cudaGetDevice", [&] { return cuda.getDevice(&device); });
  }
  Outcome numDevices(int &number) override {
    return call("cudaGetDeviceCount", [&] { return cuda.getDeviceCount(&number); });
  }
  void configure(occlConfig_t &config, int device) override {
    config.deviceKind = occlDeviceCuda;
    config.device = static_cast<uint32_t>(device);
  }
  /// CUDA finds out, when the call becomes work of the stream.
  Outcome check(cudaStream_t) override { return {}; }

  Outcome launch(std::vector<Batch> batches) override {
    for (Batch &batch : batches) // before anything is begun
      if (Outcome outcome = checkPossible(batch); !outcome.ok())
        return outcome;
    for (Batch &batch : batches)
      if (Outcome outcome = launch(batch); !outcome.ok())
        return outcome;
    return {};
  }

  Outcome allocate(void *&memory, size_t bytes) override {
    return call("cudaMalloc", [&] { return cuda.malloc(&memory, bytes); });
  }
  Outcome release(void *memory) override {
    return call("cudaFree", [&] { return cuda.free(memory); });
  }

private:
  template <class Call> Outcome call(const char *name, Call toCuda) {
    if (!cuda.isThere())
      return {ncclUnhandledCudaError,
              "libcudart.so is not loaded and could not be found. Without GPUs set "
              "OCCL_NCCL_HOST=1, for buffers in host memory"};
    const int error = toCuda();
    return error == 0 ? Outcome()
                      : Outcome{ncclUnhandledCudaError,
                                std::string(name) + ": " + cuda.errorString(error)};
  }

  static Outcome checkPossible(const Batch &batch) {
    if (!batch.transfers.empty())
      return invalidUsage("OCCL has no sends and receives between CUDA devices");
    for (const Operation &operation : batch.collectives)
      if (operation.hasScalar)
        return invalidUsage("OCCL has no ncclRedOpCreatePreMulSum on CUDA devices");
    return {};
  }

  /// OCCL orders the calls of a communicator over its streams.
  static Outcome launch(Batch &batch) {
    occlComm_t comm = nullptr;
    if (Outcome outcome = batch.comm->connected(comm); !outcome.ok())
      return outcome;
    batch.comm->operationsAreUnseen();
    Outcome outcome;
    for (const Operation &operation : batch.collectives)
      if (outcome.ok())
        outcome = outcomeOf(occlCall(comm, &operation.call, operation.stream));
    if (!outcome.ok() && !batch.comm->isAborted())
      batch.comm->fail(outcome);
    return outcome;
  }

  const Cuda cuda = load();
};

} // namespace

StreamKind &cudaStreams() {
  static CudaStreams *streams = new CudaStreams;
  return *streams;
}

} // namespace occl::nccl
