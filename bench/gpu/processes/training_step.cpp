// gpu_training_step <ranks> <iterations> <thread blocks of the daemon> <all-reduce plan>... --
// <plan>...
//
// Plans before the "--" serve streams, those behind it the daemon.
//
// The all-reduces of one step of data-parallel ResNet-50: 161 gradients, 102 MB of floats, each
// rank a process on a GPU of its own. One by one in a random order, in a stream and by the resident
// daemon, where every rank has an order of its own; and in buckets of 25 MiB, as frameworks send
// them. Microseconds from the first call to the host's seeing all results: the largest of the
// ranks, median of the iterations. Every result is checked, on every rank, before it is timed.
#include "bench/gpu/processes/measured.h"
#include "tools/demo/resnet50.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace occl;
using namespace occl::bench;

namespace {

constexpr uint64_t kSeed = 2026;
constexpr size_t kBucketBytes = 25 << 20;
constexpr size_t kAlignment = 128 / sizeof(float); // of each gradient, in elements

/// A part of the buffers that is reduced by one call.
struct Part {
  size_t first = 0, count = 0;             // elements
  occlCall_t call = OCCL_CALL_INITIALIZER; // in a stream
  occlCall_t callForDaemon{};
};

struct Buffers {
  float *input = nullptr, *output = nullptr;
};

float inputOf(uint32_t rank, size_t i) { return static_cast<float>((i * 7 + rank * 13) % 101); }

/// The gradients one after the other, the classifier's first, as they come to be.
std::vector<Part> gradients() {
  std::vector<demo::Parameter> parameters = demo::resnet50Parameters();
  std::ranges::reverse(parameters);
  std::vector<Part> parts;
  size_t first = 0;
  for (const demo::Parameter &parameter : parameters) {
    parts.push_back({.first = first, .count = parameter.numElements()});
    first += (parameter.numElements() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return parts;
}

/// The same elements in as few parts of at most kBucketBytes as their order allows.
std::vector<Part> inBuckets(const std::vector<Part> &parts) {
  std::vector<Part> buckets;
  for (const Part &part : parts) {
    size_t end = part.first + part.count;
    if (buckets.empty() || (end - buckets.back().first) * sizeof(float) > kBucketBytes)
      buckets.push_back({.first = part.first});
    buckets.back().count = end - buckets.back().first;
  }
  return buckets;
}

class TrainingStep {
public:
  /// The first numForStreams plans serve streams.
  TrainingStep(Together &together, uint32_t rank, const std::vector<std::string> &plans,
               size_t numForStreams, uint32_t daemonBlocks)
      : together(together), rank(rank),
        occl(Occl::join(together, rank, "allreduce", plans, false, daemonBlocks)),
        daemonBlocks(daemonBlocks), nccl(Nccl::join(together, rank)), apart(gradients()),
        buckets(inBuckets(apart)), elements(apart.back().first + apart.back().count) {
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (std::vector<Part> *parts : {&apart, &buckets})
      for (Part &part : *parts)
        part.call = occl->callWith(part.count, 0, numForStreams).value();
    for (Part &part : apart)
      part.callForDaemon =
          occl->callWith(part.count, numForStreams, occl->numPlans() - numForStreams).value();
    std::mt19937_64 random(kSeed);
    order.resize(apart.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::ranges::shuffle(order, random);
    ownOrder = order;
    for (uint32_t r = 0; r < rank; ++r) // rank 0's is everybody's order
      std::ranges::shuffle(ownOrder, random);
  }

  void compare(uint32_t iterations) {
    if (rank == 0)
      std::printf("| %zu all-reduces, %.1f MB | us | GB/s |\n|---|---|---|\n", apart.size(),
                  static_cast<double>(elements) * sizeof(float) / 1e6);
    Buffers own{allocateOwn(), allocateOwn()};
    row("OCCL, daemon of " + std::to_string(daemonBlocks) +
            " thread blocks, each rank in its own random order",
        own, iterations, [&] { runByDaemon(own); });
    row("OCCL, in a stream, in one random order", own, iterations,
        [&] { enqueueOwn(own, apart, order); });
    row("OCCL, in a stream, in buckets", own, iterations, [&] { enqueueOwn(own, buckets, {}); });
    if (nccl == nullptr)
      return;
    for (bool isSymmetric : {false, true}) {
      Buffers theirs{allocateTheirs(isSymmetric), allocateTheirs(isSymmetric)};
      std::string name = "NCCL " + nccl->version() + (isSymmetric ? ", symmetric" : "");
      row(name + ", in a stream, in one random order", theirs, iterations,
          [&] { enqueueTheirs(theirs, apart, order); });
      row(name + ", in a stream, in buckets", theirs, iterations,
          [&] { enqueueTheirs(theirs, buckets, {}); });
    }
  }

private:
  float *allocateOwn() { return static_cast<float *>(occl->allocate(elements * sizeof(float))); }
  float *allocateTheirs(bool isSymmetric) {
    return static_cast<float *>(nccl->allocate(elements * sizeof(float), isSymmetric));
  }

  void runByDaemon(const Buffers &buffers) {
    std::vector<uint64_t> requests;
    for (size_t i : ownOrder)
      requests.push_back(occl->start(i, apart[i].callForDaemon, buffers.input + apart[i].first,
                                     buffers.output + apart[i].first));
    for (uint64_t request : requests)
      occl->wait(request);
  }

  /// An empty order: as the parts lie.
  template <class Enqueue>
  void enqueueAll(const std::vector<Part> &parts, const std::vector<size_t> &inOrder,
                  const Enqueue &enqueue) {
    for (size_t i = 0; i < parts.size(); ++i)
      enqueue(parts[inOrder.empty() ? i : inOrder[i]]);
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  void enqueueOwn(const Buffers &buffers, const std::vector<Part> &parts,
                  const std::vector<size_t> &inOrder) {
    enqueueAll(parts, inOrder, [&](const Part &part) {
      occl->enqueue(part.call, buffers.input + part.first, buffers.output + part.first, stream);
    });
  }
  void enqueueTheirs(const Buffers &buffers, const std::vector<Part> &parts,
                     const std::vector<size_t> &inOrder) {
    enqueueAll(parts, inOrder, [&](const Part &part) {
      nccl->enqueue(Kind::AllReduce, buffers.input + part.first, buffers.output + part.first,
                    part.count, stream);
    });
  }

  template <class Run>
  void row(const std::string &name, const Buffers &buffers, uint32_t iterations, const Run &run) {
    verify(name, buffers, run);
    std::vector<double> times;
    for (uint32_t i = 0; i < iterations; ++i) {
      together.meet();
      auto begin = std::chrono::steady_clock::now();
      run();
      auto taken = std::chrono::steady_clock::now() - begin;
      times.push_back(
          together.largest(std::chrono::duration<double, std::micro>(taken).count(), rank));
    }
    std::ranges::sort(times);
    double median = times[times.size() / 2];
    if (rank == 0)
      std::printf("| %s | %.0f | %.1f |\n", name.c_str(), median,
                  static_cast<double>(elements) * sizeof(float) / median / 1e3);
    std::fflush(stdout);
  }

  template <class Run>
  void verify(const std::string &name, const Buffers &buffers, const Run &run) {
    std::vector<float> host(elements);
    for (size_t i = 0; i < elements; ++i)
      host[i] = inputOf(rank, i);
    size_t bytes = elements * sizeof(float);
    require(cudaMemcpy(buffers.input, host.data(), bytes, cudaMemcpyDefault), "copying");
    require(cudaMemset(buffers.output, 0x7f, bytes), "clearing");
    together.meet();
    run();
    require(cudaMemcpy(host.data(), buffers.output, bytes, cudaMemcpyDefault), "copying");
    for (const Part &part : apart)
      for (size_t i = part.first; i < part.first + part.count; ++i) {
        float sum = 0;
        for (uint32_t r = 0; r < together.size(); ++r)
          sum += inputOf(r, i);
        if (host[i] != sum) {
          std::fprintf(stderr, "%s: element %zu of rank %u is %g, not %g\n", name.c_str(), i, rank,
                       double(host[i]), double(sum));
          std::exit(1);
        }
      }
  }

  Together &together;
  const uint32_t rank;
  std::unique_ptr<Occl> occl;
  const uint32_t daemonBlocks;
  std::unique_ptr<Nccl> nccl;
  cudaStream_t stream = nullptr;
  std::vector<Part> apart, buckets;
  const size_t elements; // of a buffer, with what lies between the gradients
  std::vector<size_t> order, ownOrder;
};

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int i) {
    return argc >= 5 ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : 0;
  };
  uint32_t numRanks = number(1), iterations = number(2), daemonBlocks = number(3);
  if (numRanks < 2 || numRanks > 8 || iterations == 0 || daemonBlocks == 0) {
    std::fprintf(stderr, "usage: gpu_training_step <ranks> <iterations> "
                         "<thread blocks of the daemon> <all-reduce plan>... -- <plan>...\n");
    return 2;
  }
  std::vector<std::string> plans(argv + 4, argv + argc);
  auto end = std::ranges::find(plans, "--");
  const auto numForStreams = static_cast<size_t>(end - plans.begin());
  if (end == plans.end() || numForStreams == 0 || numForStreams + 1 == plans.size()) {
    std::fprintf(stderr,
                 "gpu_training_step: give plans for streams, \"--\" and plans for the daemon\n");
    return 2;
  }
  plans.erase(end);
  return Together::run(numRanks, [&](Together &together, uint32_t rank) {
    TrainingStep(together, rank, plans, numForStreams, daemonBlocks).compare(iterations);
    return 0;
  });
}
