#include "runtime/cuda/cuda_rank.h"

#include "runtime/base/deadline.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/describe_giving_up.h"
#include "runtime/cuda/linked_devices.h"

#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

ControlBlock *controlBlockOf(const daemon::Fabric &fabric, uint32_t rank) {
  return reinterpret_cast<ControlBlock *>(fabric.of(rank).arena());
}

} // namespace

Status checkDevice(uint32_t device) {
  int number = 0;
  Status counted = toStatus(cudaGetDeviceCount(&number), "looking for CUDA devices");
  if (!counted.ok())
    return invalid(counted.message() + "; is there a driver?");
  if (device >= static_cast<uint32_t>(number))
    return invalid("config->device is " + std::to_string(device) + "; this process has " +
                   std::to_string(number) + " CUDA devices");
  return {};
}

uint32_t numDevices() {
  int number = 0;
  return cudaGetDeviceCount(&number) == cudaSuccess ? static_cast<uint32_t>(number) : 0;
}

uint64_t hostBytesForDevices() { return sizeof(ControlBlock); }

StatusOr<std::unique_ptr<DeviceRank>> makeDeviceRank(daemon::Fabric &fabric,
                                                     const DeviceRankOptions &options) {
  return CudaRank::make(fabric, options);
}

StatusOr<std::unique_ptr<DeviceRank>> CudaRank::make(daemon::Fabric &fabric,
                                                     const DeviceRankOptions &options) {
  if (fabric.numRanks() > kMaxRanks)
    return invalid("a communicator on devices has at most " + std::to_string(kMaxRanks) +
                   " ranks, not " + std::to_string(fabric.numRanks()));
  std::unique_ptr<CudaRank> rank(new CudaRank(fabric, options));
  Status started = rank->start();
  if (!started.ok())
    return started;
  return std::unique_ptr<DeviceRank>(std::move(rank));
}

Status CudaRank::start() {
  Status status = checkDevice(options.device);
  if (status.ok())
    status = checkBuiltFor(device());
  if (!status.ok())
    return status;
  int blocks = 0;
  status = toStatus(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device()),
                    "asking for the number of multiprocessors");
  maxBlocks = static_cast<uint32_t>(blocks);
  if (!status.ok())
    return status;
  OnDevice on(device());
  status = toStatus(static_cast<cudaError_t>(loadInStream()), "loading the interpreter");
  if (!status.ok())
    return status;
  std::vector<ControlBlock *> blocksOfRanks;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    blocksOfRanks.push_back(controlBlockOf(fabric, r));
  slots = std::make_unique<SlotTable>(blocksOfRanks[0]->slots, fabric.rank(), fabric.numRanks());
  auto made = DeviceMemory::make(fabric.ranks(), blocksOfRanks, device(), options.bytes);
  if (!made.ok())
    return made.status();
  memory = std::move(*made);
  space = std::make_unique<ArenaSpace>(kRecordBytes, memory->bytes() - kRecordBytes, *slots);
  status = startAwaiting();
  if (!status.ok())
    return status;
  auto resident = ResidentRank::make(
      fabric, {device(), options.executors, options.isStrict, options.timeout, options.scheduler},
      context());
  if (!resident.ok())
    return resident.status();
  residents = std::move(*resident);
  auto watching =
      HostWatch::start(fabric, device(),
                       {[this](const GivingUp &where) { return describe(where); },
                        [this](uint32_t rank) { return residents->describeWaitFor(rank); },
                        [this] { residents->lookAfter(); }});
  if (!watching.ok())
    return watching.status();
  watch = std::move(*watching);
  return {};
}

/// The kernels of this rank end before its memory goes.
CudaRank::~CudaRank() {
  // Others on the same device that wait for this rank leave, too.
  fabric.leave();
  if (residents)
    residents->detach();
  if (watch)
    watch->endAll();
  OnDevice on(device());
  cudaDeviceSynchronize();
  watch.reset();
  residents.reset();
  collectives.clear();
  freeSeats.clear();
  endMemory.reset();
}

void CudaRank::drain() {
  residents->drain();
  Deadline deadline(options.timeout + std::chrono::seconds(1));
  for (const auto &[id, known] : collectives)
    while (!fabric.failed() && !deadline.passed()) {
      auto finished = known.eager->finished();
      if (!finished.ok() || *finished >= known.numEnqueued)
        break;
      sleepFor(std::chrono::microseconds(50));
    }
}

Status CudaRank::connect() { return memory->connect(); }

RegistrationContext CudaRank::context() {
  return {*memory, *space, *slots, fabric.rank(), fabric.numRanks(), maxBlocks};
}

Status CudaRank::add(const daemon::CollectiveSpec &spec, std::chrono::microseconds stay) {
  if (fabric.failed())
    return fabric.failure();
  std::lock_guard lock(calls);
  if (collectives.contains(spec.id))
    return invalid("a collective with id " + std::to_string(spec.id) + " is registered already");
  auto eager = Registration::make(context(), spec, 0);
  if (!eager.ok())
    return eager.status();
  std::unique_ptr<Seat> seat;
  if (stay.count() != 0) {
    auto taken = takeSeat((*eager)->collective().numBlocks);
    if (!taken.ok())
      return taken.status();
    seat = std::move(*taken);
  }
  std::lock_guard changing(table);
  Known &known = collectives[spec.id];
  known.spec = spec;
  known.stay = stay;
  known.seat = std::move(seat);
  known.eager = std::move(*eager);
  residents->add(spec);
  return {};
}

Status CudaRank::remove(uint64_t id) {
  residents->settleComplete();
  std::lock_guard lock(calls);
  auto known = find(id);
  if (!known.ok())
    return known.status();
  if (!fabric.failed()) {
    auto finished = (*known)->eager->finished();
    if (!finished.ok())
      return finished.status();
    if (*finished < (*known)->numEnqueued)
      return invalid("collective " + std::to_string(id) + " has invocations in flight");
  }
  if (Status left = awaitLeaving(**known); !left.ok())
    return left;
  if (Status removed = residents->remove(id); !removed.ok())
    return removed;
  Status retired = (*known)->eager->retire();
  for (const auto &captured : (*known)->captured)
    if (retired.ok())
      retired = captured->retire();
  std::lock_guard changing(table);
  if ((*known)->seat)
    freeSeats.push_back(std::move((*known)->seat));
  collectives.erase(id);
  return retired;
}

StatusOr<CudaRank::Known *> CudaRank::find(uint64_t id) {
  auto found = collectives.find(id);
  if (found == collectives.end())
    return invalid("no collective with id " + std::to_string(id) + " is registered");
  return &found->second;
}

StatusOr<daemon::RequestId> CudaRank::submitOnStream(uint64_t id, const void *input, void *output,
                                                     void *userStream,
                                                     const daemon::Callback &callback) {
  auto stream = static_cast<cudaStream_t>(userStream);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  {
    OnDevice on(device());
    Status asked = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
    if (!asked.ok())
      return asked;
  }
  if (capture != cudaStreamCaptureStatusNone)
    return invalid("the stream is captured: each replay of a graph would need a submission of its "
                   "own. Use occlEnqueue there, which becomes a node of the graph");
  return residents->submit(id, input, output, stream, callback);
}

std::string CudaRank::describe(const GivingUp &where) {
  std::lock_guard lock(table);
  for (const auto &[id, known] : collectives) {
    bool isIt = known.eager->collective().slot == where.slot;
    for (const auto &captured : known.captured)
      isIt |= captured->collective().slot == where.slot;
    if (isIt)
      return describeGivingUp(where, known.spec, fabric.rank());
  }
  return "rank " + std::to_string(fabric.rank()) + " gave up in a collective that is gone";
}

void *CudaRank::allocate(uint64_t bytes) {
  auto offset = space->lend(bytes);
  return offset ? memory->arena(fabric.rank()) + *offset : nullptr;
}

bool CudaRank::release(void *block) {
  auto offset = memory->offsetOf(block, 0);
  return offset && space->takeBack(*offset);
}

} // namespace occl::cuda
