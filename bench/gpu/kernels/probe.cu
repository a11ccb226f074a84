// All-reduce kernels written by hand for a fixed number of ranks: what the interpreter is compared
// with. Float sum, in rank order. A thread block works on its own part of the data and meets the
// blocks of the same number on the other ranks. Staging memory has two halves used in turn: a rank
// writes to a half again only two invocations later, after it has had something from every rank
// that came after that rank had read the half.
#include "bench/gpu/kernels/kernel_arguments.h"
#include "bench/gpu/kernels/patience.cuh"
#include "runtime/base/system_words.cuh"

namespace occl::bench {

using namespace occl::cuda;

namespace {

/// Words of a line each, by block and rank that writes it.
__device__ uint64_t *flagOf(const ProbeArguments &arguments, uint32_t owner, uint32_t writer) {
  return arguments.flags[owner] + (blockIdx.x * kMaxRanks + writer) * 16;
}

/// Tells all ranks that this block has come to `epoch` and waits until theirs have; where the words
/// lie decides whether the waiting polls own memory or the peers'. False: gave up.
template <uint32_t N, bool kPush>
__device__ bool meet(const ProbeArguments &arguments, uint64_t epoch, Patience &patience) {
  __syncthreads();
  uint32_t peer = threadIdx.x, self = arguments.rank;
  if (kPush ? peer < N && peer != self : peer == 0)
    releaseWord(flagOf(arguments, kPush ? peer : self, self), epoch);
  patience.progressed();
  for (;;) {
    bool ready = peer >= N || peer == self ||
                 acquireWord(flagOf(arguments, kPush ? self : peer, peer)) >= epoch;
    if (__syncthreads_and(ready))
      return true;
    if (patience.isExhausted([](bool late) { return __syncthreads_or(late) != 0; }))
      return false;
  }
}

/// The part of `total` that belongs to this block.
struct Part {
  uint64_t begin, end;
  __device__ explicit Part(uint64_t total)
      : begin(total * blockIdx.x / gridDim.x), end(total * (blockIdx.x + 1) / gridDim.x) {}
};

__device__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

/// Sum over the ranks' float4 at `address(rank)`.
template <uint32_t N, class Address> __device__ float4 sumOver(const Address &address) {
  float4 values[N];
#pragma unroll
  for (uint32_t r = 0; r < N; ++r)
    values[r] = *address(r);
#pragma unroll
  for (uint32_t r = 1; r < N; ++r)
    values[0] = add(values[0], values[r]);
  return values[0];
}

template <uint32_t N> struct OneShotLL {
  /// Two floats travel with the invocation's number beside each: data and flag are one store.
  __device__ static bool run(const ProbeArguments &arguments, uint32_t number, Patience &) {
    const uint32_t self = arguments.rank, flag = number + 1;
    const uint64_t pairs = arguments.elements / 2;
    const uint64_t half = (number & 1) * N * pairs;
    auto *input = reinterpret_cast<const float2 *>(arguments.inputs[self]);
    auto slot = [&](uint32_t owner, uint32_t writer, uint64_t i) {
      return reinterpret_cast<uint4 *>(arguments.staging[owner]) + half + writer * pairs + i;
    };
    Part part(pairs);
    for (uint64_t i = part.begin + threadIdx.x; i < part.end; i += blockDim.x) {
      float2 own = input[i];
#pragma unroll
      for (uint32_t r = 1; r < N; ++r)
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                         slot((self + r) % N, self, i)),
                     "r"(__float_as_uint(own.x)), "r"(flag), "r"(__float_as_uint(own.y)), "r"(flag)
                     : "memory");
      float2 sum = {0, 0};
#pragma unroll
      for (uint32_t r = 0; r < N; ++r) {
        uint4 line = {__float_as_uint(own.x), flag, __float_as_uint(own.y), flag};
        uint64_t start = clock64();
        while (r != self) {
          asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(line.x), "=r"(line.y), "=r"(line.z), "=r"(line.w)
                       : "l"(slot(self, r, i))
                       : "memory");
          if (line.y == flag && line.w == flag)
            break;
          if (clock64() - start > arguments.patience)
            return false;
        }
        sum = {sum.x + __uint_as_float(line.x), sum.y + __uint_as_float(line.z)};
      }
      reinterpret_cast<float2 *>(arguments.outputs[self])[i] = sum;
    }
    return true;
  }
};

/// Data into every peer's staging (push) or one's own (pull), a flag for the block, then the sum.
template <uint32_t N, bool kPush> struct OneShotFlag {
  __device__ static bool run(const ProbeArguments &arguments, uint32_t number, Patience &patience) {
    const uint32_t self = arguments.rank;
    const uint64_t vectors = arguments.elements / 4;
    const uint64_t half = (number & 1) * N * vectors;
    auto *input = reinterpret_cast<const float4 *>(arguments.inputs[self]);
    auto staged = [&](uint32_t owner, uint32_t writer) {
      return reinterpret_cast<float4 *>(arguments.staging[owner]) + half + writer * vectors;
    };
    Part part(vectors);
    for (uint64_t i = part.begin + threadIdx.x; i < part.end; i += blockDim.x) {
      float4 own = input[i];
      if (!kPush)
        staged(self, self)[i] = own;
#pragma unroll
      for (uint32_t r = 1; kPush && r < N; ++r)
        staged((self + r) % N, self)[i] = own;
    }
    if (!meet<N, kPush>(arguments, number + 1, patience))
      return false;
    for (uint64_t i = part.begin + threadIdx.x; i < part.end; i += blockDim.x)
      reinterpret_cast<float4 *>(arguments.outputs[self])[i] = sumOver<N>(
          [&](uint32_t r) { return r == self ? input + i : staged(kPush ? self : r, r) + i; });
    return true;
  }
};

/// Each rank sums its share straight from the peers' inputs and stores it straight to their
/// outputs.
template <uint32_t N> struct TwoShotDirect {
  __device__ static bool run(const ProbeArguments &arguments, uint32_t number, Patience &patience) {
    const uint64_t share = arguments.elements / 4 / N;
    const uint64_t first = arguments.rank * share;
    if (!meet<N, true>(arguments, 2 * uint64_t(number) + 1, patience))
      return false;
    Part part(share);
    for (uint64_t i = part.begin + threadIdx.x; i < part.end; i += blockDim.x) {
      float4 sum = sumOver<N>([&](uint32_t r) {
        return reinterpret_cast<const float4 *>(arguments.inputs[r]) + first + i;
      });
#pragma unroll
      for (uint32_t r = 0; r < N; ++r)
        reinterpret_cast<float4 *>(arguments.outputs[(arguments.rank + r) % N])[first + i] = sum;
    }
    return meet<N, true>(arguments, 2 * uint64_t(number) + 2, patience);
  }
};

template <class Algorithm>
__global__ void __launch_bounds__(kThreads)
    probeLoop(const __grid_constant__ ProbeArguments arguments) {
  Patience patience(arguments.patience);
  uint64_t begin = 0;
  bool alive = true;
  uint32_t i = 0;
  for (; alive && i < arguments.invocations; ++i) {
    if (i == arguments.warmUp)
      begin = deviceClock();
    alive = Algorithm::run(arguments, arguments.firstInvocation + i, patience);
    alive = __syncthreads_and(alive) != 0;
  }
  if (threadIdx.x == 0)
    report(arguments.reports[blockIdx.x], {alive ? BlockReport::Finished : BlockReport::GaveUp,
                                           i,
                                           {},
                                           {},
                                           arguments.rank,
                                           blockIdx.x,
                                           deviceClock() - begin});
}

template <uint32_t N>
void launchFor(Probe probe, const ProbeArguments &arguments, uint32_t blocks, cudaStream_t stream) {
  switch (probe) {
  case Probe::OneShotLL:
    return probeLoop<OneShotLL<N>><<<blocks, kThreads, 0, stream>>>(arguments);
  case Probe::OneShotPush:
    return probeLoop<OneShotFlag<N, true>><<<blocks, kThreads, 0, stream>>>(arguments);
  case Probe::OneShotPull:
    return probeLoop<OneShotFlag<N, false>><<<blocks, kThreads, 0, stream>>>(arguments);
  case Probe::TwoShotDirect:
    return probeLoop<TwoShotDirect<N>><<<blocks, kThreads, 0, stream>>>(arguments);
  }
}

} // namespace

int launchProbe(Probe probe, const ProbeArguments &arguments, uint32_t blocks, void *stream) {
  switch (arguments.numRanks) {
  case 2:
    launchFor<2>(probe, arguments, blocks, static_cast<cudaStream_t>(stream));
    break;
  case 4:
    launchFor<4>(probe, arguments, blocks, static_cast<cudaStream_t>(stream));
    break;
  case 8:
    launchFor<8>(probe, arguments, blocks, static_cast<cudaStream_t>(stream));
    break;
  default:
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

} // namespace occl::bench
