// launch_hops: where the time between a host's launch of a kernel and its hearing of the kernel's
// end goes, on one GPU, one host thread. Medians of many, each with nothing else on the device.
// What a launch costs by arguments, thread blocks, attributes and kind of stream; what the calls
// before it cost; and what remains of it where the kernel is there already and waits for a word.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kWarmUp = 200, kMeasured = 2000;
constexpr uint32_t kMostBlocks = 64;
constexpr uint64_t kPatience = 2'000'000'000; // nanoseconds

void require(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::printf("FAILED: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

double now() {
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Small {
  uint64_t *words;
  uint64_t ticket;
};
/// About what a kernel of a collective is handed.
struct Large : Small {
  uint64_t rest[74];
};

__device__ void store(uint64_t *word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ uint64_t load(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ uint64_t clockNow() {
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

template <class Arguments, bool kWaits>
__global__ void answer(const __grid_constant__ Arguments arguments) {
  if (kWaits)
    asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x == 0)
    store(arguments.words + blockIdx.x, arguments.ticket);
}

/// How those that are there already hear of a call.
enum class Bell {
  Own,      // each polls a line of the host's memory
  Shared,   // all poll one
  Forwarded // one polls, and passes it on through memory of the device
};

struct Waiting {
  uint64_t *bells;   // of the host, a line for each thread block
  uint64_t *relay;   // of the device
  uint64_t *answers; // of the host, a word for each
  uint64_t calls;
  Bell bell;
};

/// Answers so many calls, or leaves when none comes.
__global__ void answerCalls(const __grid_constant__ Waiting waiting) {
  if (threadIdx.x != 0)
    return;
  const bool isRelayed = waiting.bell == Bell::Forwarded && blockIdx.x != 0;
  const uint64_t *bell = isRelayed                   ? waiting.relay
                         : waiting.bell == Bell::Own ? waiting.bells + blockIdx.x * 8
                                                     : waiting.bells;
  for (uint64_t call = 1; call <= waiting.calls; ++call) {
    const uint64_t since = clockNow();
    while (load(bell) < call)
      if (clockNow() - since > kPatience)
        return;
    if (waiting.bell == Bell::Forwarded && blockIdx.x == 0)
      store(waiting.relay, call);
    store(waiting.answers + blockIdx.x, call);
  }
}

class Words {
public:
  Words() {
    require(cudaHostAlloc(reinterpret_cast<void **>(&words), 2 * kBytes, cudaHostAllocMapped),
            "cudaHostAlloc");
    std::fill_n(words, 2 * kBytes / 8, 0);
  }
  ~Words() { cudaFreeHost(words); }
  uint64_t *answers() { return words; }
  uint64_t *bells() { return words + kBytes / 8; }
  /// Until the first `number` answers are `ticket`.
  void await(uint64_t ticket, uint32_t number) {
    const double since = now();
    for (uint32_t i = 0; i < number; ++i)
      for (uint64_t polls = 1; __atomic_load_n(words + i, __ATOMIC_ACQUIRE) != ticket; ++polls) {
        __builtin_ia32_pause();
        if (polls % 65536 == 0 && now() - since > kPatience / 1000.) {
          std::printf("FAILED: no answer\n");
          std::exit(1);
        }
      }
  }

private:
  static constexpr size_t kBytes = kMostBlocks * 64;
  uint64_t *words = nullptr;
};

/// Microseconds from the launch until its call returns, until the host has all words, and, launched
/// anew, until the stream is synchronised.
struct Hops {
  double launched, heard, synchronized;
};
using Launch = std::function<void(uint64_t ticket)>;

Hops measure(Words &words, cudaStream_t stream, uint32_t numBlocks, const Launch &launch) {
  static uint64_t ticket = 0;
  std::vector<double> launched, heard, synchronized;
  for (uint32_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const double begin = now();
    launch(++ticket);
    const double back = now();
    words.await(ticket, numBlocks);
    const double end = now();
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (i >= kWarmUp) {
      launched.push_back(back - begin);
      heard.push_back(end - begin);
    }
  }
  for (uint32_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const double begin = now();
    launch(++ticket);
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (i >= kWarmUp)
      synchronized.push_back(now() - begin);
  }
  return {median(launched), median(heard), median(synchronized)};
}

/// The same where the next call comes as soon as the host has the words of the one before.
double measureInTurn(Words &words, uint32_t numBlocks, cudaStream_t stream, const Launch &launch) {
  static uint64_t ticket = 1ull << 32;
  std::vector<double> heard;
  for (uint32_t i = 0; i < kWarmUp + kMeasured; ++i) {
    const double begin = now();
    launch(++ticket);
    words.await(ticket, numBlocks);
    if (i >= kWarmUp)
      heard.push_back(now() - begin);
  }
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return median(heard);
}

struct Shape {
  const char *name;
  uint32_t blocks, threads;
  bool isLarge, isEarly, waits;
};

template <class Arguments> Launch launchOf(const Shape &shape, Words &words, cudaStream_t stream) {
  return [=, answers = words.answers()](uint64_t ticket) {
    Arguments arguments = {};
    arguments.words = answers;
    arguments.ticket = ticket;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.blocks);
    config.blockDim = dim3(shape.threads);
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = shape.isEarly ? 1 : 0;
    auto *kernel = shape.waits ? answer<Arguments, true> : answer<Arguments, false>;
    require(cudaLaunchKernelEx(&config, kernel, arguments), "launch");
  };
}

void print(const char *name, const char *stream, const Hops &hops, double inTurn) {
  std::printf("| %s | %s | %.2f | %.2f | %.2f | %.2f |\n", name, stream, hops.launched, hops.heard,
              hops.synchronized, inTurn);
  std::fflush(stdout);
}

void measureLaunches(Words &words, cudaStream_t plain, cudaStream_t urgent) {
  const Shape shapes[] = {
      {"1 x 32 threads, 16 bytes", 1, 32, false, false, false},
      {"1 x 32 threads, 608 bytes", 1, 32, true, false, false},
      {"4 x 160 threads, 608 bytes", 4, 160, true, false, false},
      {"the same, waits for earlier work", 4, 160, true, false, true},
      {"the same, waits, early start", 4, 160, true, true, true},
      {"32 x 160 threads, 608 bytes", 32, 160, true, false, false},
      {"64 x 512 threads, 608 bytes", 64, 512, true, false, false},
  };
  std::printf("\n| kernel | stream | launch returns | host hears of it | stream synchronised | "
              "heard, one after the other |\n|---|---|---|---|---|---|\n");
  for (const Shape &shape : shapes)
    for (cudaStream_t stream : {plain, urgent}) {
      const Launch launch = shape.isLarge ? launchOf<Large>(shape, words, stream)
                                          : launchOf<Small>(shape, words, stream);
      const Hops hops = measure(words, stream, shape.blocks, launch);
      print(shape.name, stream == plain ? "plain" : "urgent", hops,
            measureInTurn(words, shape.blocks, stream, launch));
    }
}

/// A graph of one kernel, whose arguments are changed before each launch.
void measureGraph(Words &words, cudaStream_t stream) {
  Large arguments = {};
  arguments.words = words.answers();
  void *pointers[] = {&arguments};
  cudaKernelNodeParams node = {};
  node.func = reinterpret_cast<void *>(answer<Large, false>);
  node.gridDim = dim3(4);
  node.blockDim = dim3(160);
  node.kernelParams = pointers;
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t kernel = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  require(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &node), "cudaGraphAddKernelNode");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const Launch launch = [&](uint64_t ticket) {
    arguments.ticket = ticket;
    require(cudaGraphExecKernelNodeSetParams(executable, kernel, &node), "set parameters");
    require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  };
  const Hops hops = measure(words, stream, 4, launch);
  print("4 x 160 threads, 608 bytes, a graph", "plain", hops,
        measureInTurn(words, 4, stream, launch));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

void measureCalls(cudaStream_t stream) {
  constexpr uint32_t kTimes = 100'000;
  auto report = [&](const char *name, const std::function<void()> &call) {
    for (uint32_t i = 0; i < 1000; ++i)
      call();
    const double begin = now();
    for (uint32_t i = 0; i < kTimes; ++i)
      call();
    std::printf("| %s | %.0f |\n", name, (now() - begin) / kTimes * 1000);
  };
  std::printf("\n| call | ns |\n|---|---|\n");
  int device = 0;
  report("cudaGetDevice", [&] { cudaGetDevice(&device); });
  report("cudaSetDevice, of the same", [&] { cudaSetDevice(device); });
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  report("cudaThreadExchangeStreamCaptureMode",
         [&] { cudaThreadExchangeStreamCaptureMode(&mode); });
  cudaStreamCaptureStatus capture;
  report("cudaStreamIsCapturing", [&] { cudaStreamIsCapturing(stream, &capture); });
  unsigned long long id = 0;
  report("cudaStreamGetId", [&] { cudaStreamGetId(stream, &id); });
  report("cudaStreamQuery, of an idle stream", [&] { cudaStreamQuery(stream); });
  report("steady_clock::now", [&] { (void)now(); });
}

/// From the host's store until it has all answers.
void measureBells(Words &words, cudaStream_t stream) {
  uint64_t *relay = nullptr;
  require(cudaMalloc(reinterpret_cast<void **>(&relay), 128), "cudaMalloc");
  std::printf("\n| there already: thread blocks | a line each | one line | passed on |\n"
              "|---|---|---|---|\n");
  for (uint32_t blocks : {1, 4, 8, 16, 32, 64}) {
    std::printf("| %u |", blocks);
    for (Bell bell : {Bell::Own, Bell::Shared, Bell::Forwarded}) {
      std::fill_n(words.bells(), kMostBlocks * 8, 0);
      std::fill_n(words.answers(), kMostBlocks, 0);
      require(cudaMemset(relay, 0, 128), "cudaMemset");
      require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const Waiting waiting = {words.bells(), relay, words.answers(), kWarmUp + kMeasured, bell};
      answerCalls<<<blocks, 32, 0, stream>>>(waiting);
      require(cudaGetLastError(), "launch");
      std::vector<double> took;
      for (uint64_t call = 1; call <= kWarmUp + kMeasured; ++call) {
        const double begin = now();
        for (uint32_t b = 0; b < (bell == Bell::Own ? blocks : 1); ++b)
          __atomic_store_n(words.bells() + b * 8, call, __ATOMIC_RELEASE);
        words.await(call, blocks);
        if (call > kWarmUp)
          took.push_back(now() - begin);
      }
      require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      std::printf(" %.2f |", median(took));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  cudaFree(relay);
}

} // namespace

int main() {
  Words words;
  int least = 0, greatest = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
  cudaStream_t plain = nullptr, urgent = nullptr;
  require(cudaStreamCreateWithFlags(&plain, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  require(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest),
          "cudaStreamCreateWithPriority");
  measureCalls(plain);
  measureLaunches(words, plain, urgent);
  measureGraph(words, plain);
  measureBells(words, plain);
}
