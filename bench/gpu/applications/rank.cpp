#include "bench/gpu/applications/rank.h"

#include "bench/gpu/timing.h"
#include "examples/partitioned/check.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace occl::bench {

using examples::check;

namespace {

constexpr uint32_t kTimeoutMs = 20000;
constexpr uint64_t kArena = 512 << 20;
/// Steps of a measurement, which is the median of so many; and before the first one.
constexpr uint32_t kSteps = 5, kTimes = 7, kBefore = 2;

} // namespace

Rank::Rank(Together &together, uint32_t rank, Settings &settings)
    : together(together), rank(rank), size(together.size()), settings(settings) {
  int devices = 0, number = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const int device = static_cast<int>(rank) % devices;
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  multiprocessors = static_cast<uint32_t>(number);
  ranksOfDevice = (size + static_cast<uint32_t>(devices) - 1) / static_cast<uint32_t>(devices);
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.device = static_cast<uint32_t>(device);
  config.timeoutMs = kTimeoutMs;
  config.arenaBytes = kArena;
  const std::string name = "applications-" + std::to_string(getppid());
  check(occlCommInitRank(&comm, size, rank, name.c_str(), &config), "occlCommInitRank");
  if (ranksOfDevice == 1)
    nccl = Nccl::join(together, rank);
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

Rank::~Rank() {
  cudaStreamDestroy(stream);
  occlCommDestroy(comm);
}

void Rank::print(const std::string &text) const {
  if (!isFirst())
    return;
  std::printf("%s", text.c_str());
  std::fflush(stdout);
}

bool Rank::begin(uint32_t number) {
  together.meet(); // all have ended the last one
  if (settings.hasFailed[number])
    return false;
  settings.now = number + 1;
  return true;
}

double Rank::median(uint32_t times, const std::function<void()> &one) {
  std::vector<double> all;
  for (uint32_t i = 0; i < times; ++i) {
    together.meet();
    const auto begin = std::chrono::steady_clock::now();
    one();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    all.push_back(together.largest(microsecondsSince(begin), rank));
  }
  return medianOf(all);
}

double Rank::inStream(const std::function<void()> &enqueue) {
  std::vector<double> times;
  for (uint32_t i = 0; i < kTimes; ++i)
    times.push_back(timeInStream(together, rank, stream, kBefore, kSteps, enqueue));
  return medianOf(times);
}

double Rank::inGraph(const std::function<void()> &enqueue) {
  return timeInGraph(together, rank, stream, kBefore, kSteps, enqueue);
}

Graph::Graph(cudaStream_t stream, const std::function<void()> &enqueue) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  enqueue();
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
}

Graph::~Graph() { cudaGraphExecDestroy(executable); }

void Graph::launch(cudaStream_t stream) const {
  check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
}

std::string ratio(double theirs, double ours) {
  if (theirs == 0 || ours == 0)
    return " - |";
  char text[32];
  std::snprintf(text, sizeof text, " %.2f |", theirs / ours);
  return text;
}

double best(const std::vector<double> &times) {
  double found = 0;
  for (double time : times)
    if (time != 0 && (found == 0 || time < found))
      found = time;
  return found;
}

std::vector<uint64_t> sizesFrom(uint64_t smallest, uint64_t largest, uint64_t times) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = smallest; size <= largest; size *= times)
    sizes.push_back(size);
  return sizes;
}

namespace {

/// Whether it fails on no rank.
bool runOnce(uint32_t ranks, const Run &run, Rank::Settings &settings,
             const std::function<void(Rank &, const Run &)> &body) {
  return Together::run(ranks, [&](Together &together, uint32_t rank) {
           try {
             Rank mine(together, rank, settings);
             body(mine, {run.size, run.isFirst, run.onlyChecks || mine.ranksOfDevice > 1});
             together.meet();
             return 0;
           } catch (const std::exception &error) {
             std::fprintf(stderr, "size %llu, rank %u: %s\n",
                          static_cast<unsigned long long>(run.size), rank, error.what());
             std::fflush(stderr);
             together.fail();
             _exit(1); // the others' memory may not be there any more
           }
         }) == 0;
}

} // namespace

int runRanks(int argc, char **argv, const std::vector<uint64_t> &sizes,
             const std::function<void(Rank &, const Run &)> &body) {
  const unsigned long ranks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const bool onlyChecks = argc == 3 && std::string(argv[2]) == "check";
  if (ranks < 2 || ranks > 8 || (argc != 2 && !onlyChecks)) {
    std::fprintf(stderr, "usage: %s <ranks, 2 to 8> [check]\n", argv[0]);
    return 2;
  }
  void *shared = mmap(nullptr, sizeof(Rank::Settings), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 1;
  int code = 0;
  for (const uint64_t size : sizes) {
    auto *settings = new (shared) Rank::Settings;
    Run run = {size, size == sizes.front(), onlyChecks};
    while (!runOnce(static_cast<uint32_t>(ranks), run, *settings, body)) {
      code = 1;
      if (settings->now == 0)
        break;
      settings->hasFailed[settings->now - 1] = true;
      settings->now = 0;
      run.isFirst = false;
    }
  }
  return code;
}

} // namespace occl::bench
