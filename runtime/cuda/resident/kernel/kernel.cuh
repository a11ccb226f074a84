// A thread block of a device as an executor: its first warp schedules and steps, the others fold.
#pragma once

#include "runtime/cuda/kernels/begin.cuh"
#include "runtime/cuda/kernels/block_run.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/tables/misuse.h"
#include "runtime/cuda/resident/executor/part_gate.h"
#include "runtime/cuda/resident/kernel/kernel.h"
#include "runtime/cuda/resident/kernel/resident_collective.h"
#include "runtime/cuda/resident/kernel/warp_target.cuh"

#include <cstdint>

namespace occl::cuda::resident {

/// Static parts of tasks that an executor keeps near it, and the room for the image of each. A
/// larger image takes the room of all tasks from kLargeTask on: there is one at a time.
inline constexpr uint32_t kCachedTasks = 8;
inline constexpr uint32_t kCachedBytes = 6 << 10;
inline constexpr uint32_t kLargeTask = 2;
static_assert((kCachedTasks - kLargeTask) * kCachedBytes >= kTableBytes);

/// The static part of a task, and the places of the invocation that it last ran.
struct CachedTask {
  const ResidentCollective *collective;
  uint32_t block;
  bool isReady;     // the places are those of invocation `number`
  bool hasMeasured; // and aligned as the image was measured for beforehand
  uint64_t number;
  /// By endsOf() of the buffers with which the steps were measured last; 0: not yet.
  uint32_t measuredFor;
  /// By rank: what it has said last, as far as this executor has looked.
  uint64_t where[kMaxRanks], begun[kMaxRanks];
  DeviceCollective device;
  CollectiveAddresses addresses;
  char *places[numPlaces(kMaxRanks, true)];
  char *image;
  GateCursor cursor; // of invocation `number`, of a partitioned collective
};

struct ExecutorShared {
  CudaTeam team;
  Invocation invocation;
  Ledger ledger;
  CachedTask tasks[kCachedTasks];
  alignas(16) char images[kCachedTasks][kCachedBytes];
};

/// Looks less often for what a step needs before it says that it is blocked: there may be others.
template <class Fold, Protocols kWhich> class ResidentTarget : public CudaTarget<Fold, kWhich> {
public:
  using Base = CudaTarget<Fold, kWhich>;
  using Base::Base;

  __device__ __forceinline__ bool arrived(const ReadyWord *words, uint32_t first, uint32_t number,
                                          uint32_t &missing) {
    if (number > kControlThreads)
      return Base::arrived(words, first, number, missing);
    const bool hasWord = threadIdx.x < number;
    const ReadyWord awaited = Base::tableEntry(words[first + (hasWord ? threadIdx.x : 0)]);
    // A lane for each word, all of them together.
    bool here = !hasWord;
#pragma unroll 1
    for (uint32_t look = 0; look < kLooks; ++look) {
      if (!here)
        here = Base::acquire(awaited.word()) >= awaited.value;
      if (Base::vote(here))
        return true;
    }
    if (!here)
      missing = first + threadIdx.x;
    return false;
  }

private:
  static constexpr uint32_t kLooks = 6;
};

/// Executes tasks' slices. The first warp.
template <class Target> class WarpRunner {
public:
  __device__ WarpRunner(ExecutorShared &shared, Target &target, Marker<WarpTarget> &marker)
      : shared(shared), target(target), marker(marker), perExecutors((1u << 16) / gridDim.x + 1) {
    if (threadIdx.x < kCachedTasks) {
      shared.tasks[threadIdx.x].collective = nullptr;
      shared.tasks[threadIdx.x].image = shared.images[threadIdx.x];
    }
    __syncwarp();
  }

  template <class Body>
  __device__ auto visit(const Submission &submission, uint32_t block, bool isClear,
                        const Body &body) {
    prepare(submission, block, isClear);
    if (!headerOf(*task).isPerStep) // the common case
      return visitBy<Resolution::PerTile>(submission, block, body);
    return visitBy<Resolution::PerStep>(submission, block, body);
  }

  /// The other ranks are told at once where the buffers of a direct program are, so that they need
  /// not wait until block 0 has its turn; unless the invocation before goes on: then that tells
  /// them. If it is counted nothing is to be ordered: see tellBegin().
  __device__ void takenIn(const Submission &submission) {
    const auto &collective = static_cast<const ResidentCollective &>(*submission.collective);
    if (!collective.device.isDirect || WarpTarget::look(collective.done) != submission.ordinal)
      return; // direct programs have no lines that had to be cleared before
    char *const buffers[2] = {submission.input, submission.output};
    announceBegin<Telling::Relaxed>(collective.device, submission.ordinal, buffers);
  }

  /// The others need to know no more, of a program with messages, than that this invocation is
  /// finished: that the next one has begun. This rank's next one may be finished before this is
  /// seen. What they have said meanwhile the next one need not look for.
  __device__ void finished(const Submission &submission) {
    const DeviceCollective &device = deviceOf(submission);
    if (device.isDirect || clearsBefore(device, submission.ordinal + 1))
      return;
    const uint32_t peer = threadIdx.x;
    const bool isPeer = peer < device.numRanks && peer != device.rank;
    if (isPeer)
      WarpTarget::raiseAtPeer(&recordIn(device.arenas[peer], device.slot, device.rank)->begun,
                              submission.ordinal + 2);
    if (isNear(submission) &&
        __any_sync(~0u, isPeer && task->begun[peer] + device.ring < submission.ordinal + 3))
      lookAtPeers();
  }

  /// What straight blocks store in other ranks' memory these wait for. So do direct programs, but
  /// not for signals: other calls have the same words.
  __device__ bool needsFence(const Submission &submission) const {
    return deviceOf(submission).straight.images == nullptr;
  }

  __device__ const CollectiveAddresses &addressesOf(const Submission &submission) const {
    return isNear(submission) ? task->addresses : *submission.collective;
  }

  __device__ uint64_t imageLoads() const { return loads; }

private:
  /// Lines are measured once for each alignment: see endsOf().
  static constexpr bool kMayHaveMeasured = Target::kProtocols == Protocols::Simple;

  template <Resolution kWhen, class Body>
  __device__ __forceinline__ auto visitBy(const Submission &submission, uint32_t block,
                                          const Body &body) {
    // Steps are measured as before if the buffers are aligned as before.
    const ImageHeader &header = headerOf(*task);
    const uint32_t ends = endsOf(submission);
    ReadyBlock<Target, kWhen> steps(shared.invocation, header.program, header.ready,
                                    reinterpret_cast<ReadyWord *>(task->image + header.bytes),
                                    target, ends != 0 && task->measuredFor == ends);
    return body([&](BlockContext &context, uint32_t maxSlices) {
      return run(submission, block, context, [&](BlockContext &c) {
        if constexpr (kMayHaveMeasured)
          if (task->hasMeasured)
            steps.takeAsMeasured();
        const StepResult result = steps.run(c, maxSlices);
        if (threadIdx.x == 0)
          task->measuredFor = ends;
        return result;
      });
    });
  }

  // Of partitioned collectives.

  /// Whether the thread block may be run.
  __device__ bool opens(uint32_t block, StepResult &result) {
    WarpTarget lanes;
    const PartGates &gates = *task->addresses.parts;
    PartGate<WarpTarget> gate(lanes, gates, task->device.rank, block);
    GateCursor cursor = task->cursor;
    if (gate.opens(cursor, result)) {
      keep(cursor);
      return true;
    }
    keep(cursor);
    if (gate.isMisused() && threadIdx.x == 0)
      giveUp(gates.bound, givingUpFor(*gates.state, gates.bound.place, gates.serial));
    return false;
  }
  __device__ void keep(const GateCursor &cursor) {
    __syncwarp();
    if (threadIdx.x == 0)
      task->cursor = cursor;
    __syncwarp();
  }

  /// It was visited last.
  __device__ bool isNear(const Submission &submission) const {
    return task != nullptr && task->collective == submission.collective;
  }
  __device__ const DeviceCollective &deviceOf(const Submission &submission) const {
    return isNear(submission)
               ? task->device
               : static_cast<const ResidentCollective &>(*submission.collective).device;
  }

  __device__ static ImageHeader &headerOf(CachedTask &task) {
    return *reinterpret_cast<ImageHeader *>(task.image);
  }
  __device__ static bool isLarge(const CachedTask &task) {
    return task.device.imageStride > kCachedBytes;
  }
  __device__ static bool holds(const CachedTask &task, const ResidentCollective &collective,
                               uint32_t block) {
    return task.collective == &collective && task.block == block;
  }

  /// How the buffers are aligned. 0: a direct program, whose steps are measured beforehand or each
  /// time: where other ranks' buffers are differs, too.
  __device__ uint32_t endsOf(const Submission &submission) const {
    constexpr uint32_t kAlignment = 16;
    const auto endOf = [](const char *buffer) {
      return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(buffer) % kAlignment);
    };
    return task->device.isDirect
               ? 0
               : 1 + endOf(submission.input) * kAlignment + endOf(submission.output);
  }

  /// Makes `task` and the invocation those of the submission.
  __device__ void prepare(const Submission &submission, uint32_t block, bool isClear) {
    const auto &collective = static_cast<const ResidentCollective &>(*submission.collective);
    const uint64_t number = submission.ordinal;
    uint32_t index = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&collective) /
                                           sizeof(ResidentCollective)) +
                     (block * perExecutors >> 16);
    task = &shared.tasks[index % kCachedTasks];
    __syncwarp();
    bool isNear = holds(*task, collective, block);
    if (!isNear && holds(shared.tasks[kLargeTask], collective, block)) {
      task = shared.tasks + kLargeTask;
      isNear = true;
    }
    bool isReady = isNear && task->isReady && task->number == number;
    if (!isNear)
      load(collective, block);
    __syncwarp();
    if (threadIdx.x == 0) {
      if (!isReady && task->addresses.parts != nullptr)
        task->cursor = {task->addresses.parts->firstRead[block], 0};
      task->isReady = isReady;
      task->number = number;
      Invocation next;
      next.program = &headerOf(*task).program;
      next.places = task->places;
      next.wordBase = task->device.wordBaseOf(number);
      next.flagBase = task->device.flagBaseOf(number);
      shared.invocation = next;
    }
    __syncwarp();
    // Who may be ahead is early enough with what finished() says.
    if ((task->device.isDirect || task->device.lead == 1 || clearsBefore(task->device, number)) &&
        !isReady && block == 0)
      tellBegin(collective, submission, isClear);
  }

  /// Whether lines have to be cleared before this rank says that it begins the call.
  __device__ static bool clearsBefore(const DeviceCollective &device, uint64_t number) {
    return number != 0 && device.clearsLines(number - 1);
  }
  /// Once: what comes after this rank has said so is of the call. Whoever visits the task next sees
  /// that it was done.
  __device__ __forceinline__ void clearBefore(uint64_t number) {
    if (acquireWord(task->device.cleared) >= number)
      return;
    clearLines(task->device, number);
    if (threadIdx.x == 0)
      storeWord(task->device.cleared, number);
    WarpTarget::fenceDevice();
  }

  /// If the invocation before is known to be complete here (isClear, or it is counted), nothing is
  /// to be ordered: other ranks access the buffers where they are, and all that this rank has
  /// stored there and loaded from there is over.
  __device__ void tellBegin(const ResidentCollective &collective, const Submission &submission,
                            bool isClear) {
    char *const buffers[2] = {submission.input, submission.output};
    if (clearsBefore(task->device, submission.ordinal)) {
      clearBefore(submission.ordinal);
      return announceBegin<Telling::Release>(task->device, submission.ordinal, buffers);
    }
    if (isClear || WarpTarget::look(collective.done) == submission.ordinal)
      announceBegin<Telling::Relaxed>(task->device, submission.ordinal, buffers);
    else
      announceBegin<Telling::Release>(task->device, submission.ordinal, buffers);
  }

  template <class Steps>
  __device__ StepResult run(const Submission &submission, uint32_t block, BlockContext &context,
                            const Steps &steps) {
    StepResult result;
    if (!task->isReady && !begin(submission, result.obstacle)) {
      result.status = StepStatus::Blocked;
      return result;
    }
    const PartGates *const parts = task->addresses.parts; // null, nearly always
    if (parts != nullptr && !opens(block, result))
      return result;
    result = steps(context);
    if (result.status != StepStatus::Finished)
      return result;
    WarpTarget lanes;
    if (parts != nullptr &&
        !PartGate<WarpTarget>(lanes, *parts, task->device.rank, block).finish(result))
      return result;
    if (threadIdx.x == 0)
      WarpTarget::post(task->device.ordinals + block, task->number + 1);
    return result;
  }

  /// Whether the other ranks let the invocation begin here. Then its places are set.
  __device__ bool begin(const Submission &submission, Obstacle &obstacle) {
    // What the call before has stored, and nobody waits for, may be where this one's is.
    if (task->device.lead == 1 && WarpTarget::look(task->addresses.done) < submission.ordinal) {
      obstacle = {BlockReason::Announce, 2, task->device.rank};
      return false;
    }
    PeerBegin peer = judgePeer(task->device, task->number, knownOfPeer());
    if (!__all_sync(~0u, peer.isReady)) {
      peer = judgePeer(task->device, task->number, lookAtPeers());
    }
    if (!__all_sync(~0u, peer.isReady)) {
      if (!peer.isReady)
        obstacle = {BlockReason::Announce, peer.isRegistered ? 1u : 0u, threadIdx.x};
      return false;
    }
    char *const buffers[2] = {submission.input, submission.output};
    bool isAligned = setPlaces(task->device, task->number, peer, buffers, task->places);
    if constexpr (kMayHaveMeasured)
      isAligned = __all_sync(~0u, isAligned);
    __syncwarp();
    if (threadIdx.x == 0) {
      task->isReady = true;
      if constexpr (kMayHaveMeasured)
        task->hasMeasured = isAligned && headerOf(*task).isMeasured;
    }
    __syncwarp();
    marker.mark(Moment::Begun, task->number, task->block);
    return true;
  }

  /// Where its arena blocks are, and how many invocations it has begun, does not change and only
  /// grows. Buffers are not known: direct programs are looked at each time.
  __device__ PeerWords knownOfPeer() const {
    PeerWords words;
    if (threadIdx.x < task->device.numRanks && !task->device.isDirect) {
      words.where = task->where[threadIdx.x];
      words.begun = task->begun[threadIdx.x];
    }
    return words;
  }
  __device__ PeerWords lookAtPeers() {
    const PeerWords words = loadPeerAcquiring(task->device, task->number);
    if (threadIdx.x < task->device.numRanks) {
      task->where[threadIdx.x] = words.where;
      task->begun[threadIdx.x] = words.begun;
    }
    return words;
  }

  /// As much of the image as may be needed is copied before it is known how much that is: that
  /// saves a trip.
  __device__ __forceinline__ void load(const ResidentCollective &collective, uint32_t block) {
    ++loads;
    loadDevice(collective);
    CachedTask *const large = shared.tasks + kLargeTask;
    if (isLarge(*task) && task != large) {
      if (threadIdx.x == 0)
        task->collective = nullptr;
      task = large;
      loadDevice(collective);
    }
    // What a large image lies over, or what lies over one.
    const bool isOver = isLarge(*task)
                            ? threadIdx.x > kLargeTask && threadIdx.x < kCachedTasks
                            : threadIdx.x == kLargeTask && task > large && isLarge(*large);
    if (isOver)
      shared.tasks[threadIdx.x].collective = nullptr;
    const char *image = task->device.images + uint64_t(block) * task->device.imageStride;
    copy(task->image, image, task->device.images == nullptr ? 0 : task->device.imageStride);
    __syncwarp();
    ImageHeader &header = headerOf(*task);
    if (task->device.images == nullptr) { // the rank has nothing to do but to take part
      if (threadIdx.x == 0)
        header = ImageHeader();
      __syncwarp();
    }
    if (threadIdx.x < kRelocations)
      relocateOne(header, task->image, threadIdx.x);
    if (threadIdx.x < kMaxRanks)
      task->where[threadIdx.x] = task->begun[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
      task->collective = &collective;
      task->block = block;
      task->measuredFor = 0;
    }
  }
  __device__ void loadDevice(const ResidentCollective &collective) {
    static_assert(sizeof(DeviceCollective) % sizeof(uint64_t) == 0);
    for (uint32_t i = threadIdx.x; i < sizeof(DeviceCollective) / sizeof(uint64_t);
         i += kControlThreads)
      reinterpret_cast<uint64_t *>(&task->device)[i] =
          reinterpret_cast<const uint64_t *>(&collective.device)[i];
    const auto &addresses = static_cast<const CollectiveAddresses &>(collective);
    static_assert(sizeof addresses / sizeof(uint64_t) <= kControlThreads);
    if (threadIdx.x < sizeof addresses / sizeof(uint64_t))
      reinterpret_cast<uint64_t *>(&task->addresses)[threadIdx.x] =
          reinterpret_cast<const uint64_t *>(&addresses)[threadIdx.x];
    __syncwarp();
  }
  /// Multiples of 16 bytes, some loads on their way together.
  __device__ static void copy(void *to, const void *from, uint32_t bytes) {
    constexpr uint32_t kTogether = 6;
    const uint32_t vectors = bytes / sizeof(uint4);
    for (uint32_t i = threadIdx.x; i < vectors; i += kTogether * kControlThreads) {
      uint4 loaded[kTogether];
#pragma unroll
      for (uint32_t k = 0; k < kTogether; ++k)
        if (i + k * kControlThreads < vectors)
          loaded[k] = static_cast<const uint4 *>(from)[i + k * kControlThreads];
#pragma unroll
      for (uint32_t k = 0; k < kTogether; ++k)
        if (i + k * kControlThreads < vectors)
          static_cast<uint4 *>(to)[i + k * kControlThreads] = loaded[k];
    }
  }

  ExecutorShared &shared;
  Target &target;
  Marker<WarpTarget> &marker;
  const uint32_t perExecutors; // 2^16 / executors, rounded up: exact for all thread blocks
  CachedTask *task = nullptr;  // of the visit
  uint64_t loads = 0;
};

template <class Target>
__global__ void __launch_bounds__(kThreads, 1)
    interpretResident(const __grid_constant__ ExecutorArguments arguments) {
  extern __shared__ __align__(16) char memory[];
  auto &shared = *reinterpret_cast<ExecutorShared *>(memory);
  // The first warp schedules and steps; the others fold what it hands them, until it dismisses
  // them.
  if (threadIdx.x >= kControlThreads)
    return Target::serve(shared.team);
  Target target(shared.team);
  WarpTarget lanes;
  Marker<WarpTarget> marker(arguments.marks == nullptr ? nullptr : arguments.marks + blockIdx.x,
                            lanes);
  WarpRunner<Target> runner(shared, target, marker);
  Executor<WarpTarget, WarpRunner<Target>>(arguments, blockIdx.x, lanes, runner, shared.ledger,
                                           marker)
      .run();
  target.dismiss();
}

template <class Target> int launchResident(const ExecutorArguments &arguments, void *stream) {
  interpretResident<Target><<<arguments.settings.numExecutors, kThreads, sizeof(ExecutorShared),
                              static_cast<cudaStream_t>(stream)>>>(arguments);
  return cudaGetLastError();
}

template <class Target> int loadResident() {
  return cudaFuncSetAttribute(interpretResident<Target>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ExecutorShared));
}

template <class Target> const Kernel &residentKernel() {
  static constexpr Kernel kernel = {launchResident<Target>, loadResident<Target>};
  return kernel;
}

} // namespace occl::cuda::resident
