// A rank on its device: makes what calls need, and frees it once nothing of it is executed any
// more.
#include "runtime/cuda/rank/cuda_rank.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/device/linked_devices.h"
#include "runtime/cuda/kernels/in_stream.h"
#include "runtime/cuda/packing/copy_kernel.h"
#include "runtime/cuda/watch/describe_giving_up.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/drain_patience.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

/// In destroy: behind the deadlines of what is in flight, and then for the device to have done what
/// it was given.
constexpr std::chrono::milliseconds kDrainGrace = std::chrono::seconds(1),
                                    kEndPatience = std::chrono::seconds(2);

/// More than the bindings of nearly all plans of the library.
constexpr size_t kRoomBytes = 1 << 20;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

ControlBlock *controlBlockOf(const daemon::Fabric &fabric, uint32_t rank) {
  return reinterpret_cast<ControlBlock *>(fabric.of(rank).arena());
}

/// What all ranks write: it lies in the shared arena of rank 0's segment, zero at first.
LaneBoard &laneBoardOf(const daemon::Fabric &fabric) {
  return *reinterpret_cast<LaneBoard *>(fabric.of(0).sharedArena());
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

uint64_t hostBytesForMessages(uint64_t arenaBytes) { return arenaBytes + kRecordBytes; }

uint64_t hostBytesForDevices() { return std::max(sizeof(ControlBlock), sizeof(LaneBoard)); }

StreamedTransfers transferInStreams(std::span<const DeviceTransfers> groups) {
  std::vector<StreamTransfers::Request> requests;
  for (const DeviceTransfers &group : groups) {
    requests.push_back(
        {&static_cast<CudaRank *>(group.rank)->streamTransfers(), group.transfers, {}});
    for (void *stream : group.streams)
      requests.back().streams.push_back(static_cast<cudaStream_t>(stream));
  }
  StreamedTransfers streamed = StreamTransfers::run(requests);
  for (const DeviceTransfers &group : groups)
    static_cast<CudaRank *>(group.rank)->expectStores();
  return streamed;
}

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
  // How many thread blocks it runs at once, and whether kernels may start early.
  int blocks = 0;
  status = toStatus(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device()),
                    "asking for the number of multiprocessors");
  maxBlocks = static_cast<uint32_t>(blocks);
  int major = 0;
  if (status.ok())
    status = toStatus(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device()),
                      "asking for the compute capability");
  startsEarly = major >= kFirstMajorWithEarlyStart;
  if (!status.ok())
    return status;
  // All kernels are loaded here: a first launch could wait for kernels that run.
  OnDevice on(device());
  status = toStatus(static_cast<cudaError_t>(loadInStream()), "loading the interpreter");
  if (status.ok())
    status = toStatus(static_cast<cudaError_t>(loadScaling()), "loading a kernel");
  if (status.ok())
    status = toStatus(static_cast<cudaError_t>(loadCopies()), "loading a kernel");
  if (!status.ok())
    return status;
  // The memory; that of other ranks is mapped once all have theirs.
  std::vector<DeviceMemory::HostMemory> hosts;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    hosts.push_back({controlBlockOf(fabric, r), fabric.of(r).heap()});
  auto made = DeviceMemory::make(
      fabric.ranks(), hosts, device(),
      {options.asNeeded ? bytesAtOnce() : options.bytes, options.arenaBytes, options.asNeeded});
  if (!made.ok())
    return made.status();
  memory = std::move(*made);
  // From here on the sending thread puts what this rank's kernels store.
  if (memory->isAcrossMachines())
    crossing = std::make_unique<DeviceCrossing>(fabric, *controlBlockOf(fabric, fabric.rank()),
                                                pairsWith(fabric.own().heap().size(), false),
                                                options.firstCall);
  return {};
}

/// Of device memory, once all of it is taken.
uint64_t CudaRank::wholeBytes() const {
  return alignUp(options.bytes + kRecordBytes, DeviceMemory::kUnit);
}

/// Records, small transfers, calls of LL, what users have, and tables. As where devices access each
/// other's memory by NVLink; else the rank needs less.
uint64_t CudaRank::bytesAtOnce() const {
  constexpr uint64_t kTables = 1920 << 10; // so that it is 8 MiB between two ranks
  const uint64_t calls = geometryIn(wholeBytes(), true, true).all();
  return pairsWith(wholeBytes(), true).clearedBytes() + transport::Arena::roundToClass(calls) +
         kTables + options.bytes - options.arenaBytes;
}

OrderedGeometry CudaRank::geometryIn(uint64_t bytes, bool hasWideLines, bool isApart) const {
  OrderedGeometry sizes = OrderedGeometry::forMemory(
      fabric.numRanks(), {bytes - kRecordBytes, options.arenaBytes}, hasWideLines);
  sizes.isApart = isApart;
  return sizes;
}

PairGeometry CudaRank::pairsWith(uint64_t arenaBytes, bool hasLines) const {
  return PairGeometry::forMemory(kRecordBytes, fabric.numRanks(), arenaBytes - kRecordBytes,
                                 hasLines);
}

/// Where arenas lie is known once all ranks have said what their devices can access.
Status CudaRank::connect() {
  OnDevice on(device());
  Status status = memory->connect();
  if (!status.ok())
    return status;
  // Lines are looked at by many threads, which memory of the host serves one after the other.
  const bool isOnDevice = memory->throughHost().empty(), isLater = isOnDevice && options.asNeeded;
  const PairGeometry pairs = pairsWith(isLater ? wholeBytes() : memory->bytes(), isOnDevice);
  if (isLater) {
    const auto sizes = geometryIn(wholeBytes(), memory->hasWideLines(), true);
    later = std::make_unique<LaterMemory>(
        fabric, *memory,
        LaterMemory::Bytes{sizes.linesLater(), sizes.messagesLater(), pairs.bytesOfSlots()},
        std::max<LaterMemory::Patience>(std::chrono::seconds(30), options.timeout));
  }
  status = divide(pairs);
  return status.ok() ? startCalls(pairs) : status;
}

/// What all ranks' arenas begin with is the same in memory of this device alone.
Status CudaRank::divide(const PairGeometry &pairs) {
  const bool isThroughHost = !memory->throughHost().empty();
  Status status = memory->clear(memory->onDevice() + pairs.begin, pairs.clearedBytes());
  if (status.ok() && isThroughHost)
    status = memory->clear(memory->arena(fabric.rank()) + pairs.begin, pairs.clearedBytes());
  if (!status.ok())
    return status;
  const auto behind = [&](uint64_t bytes) { return alignUp(pairs.begin + bytes, kBlockAlignment); };
  const uint64_t shared = behind(options.asNeeded ? pairs.clearedBytes() : pairs.bytes());
  const auto more = [this](uint64_t bytes) { return takeMore(bytes); };
  deviceSpace = std::make_unique<ArenaSpace>(shared, memory->bytesOnDevice() - shared,
                                             options.asNeeded ? more : ArenaSpace::More());
  if (isThroughHost)
    hostSpace = std::make_unique<ArenaSpace>(behind(pairs.bytes()),
                                             memory->bytes() - behind(pairs.bytes()));
  return {};
}

/// For tables of shapes, which no other rank accesses.
std::optional<ArenaSpace::Piece> CudaRank::takeMore(uint64_t bytes) {
  constexpr uint64_t kAtOnce = 8 << 20;
  const uint64_t size = std::max(transport::Arena::roundToClass(bytes), kAtOnce);
  OnDevice on(device());
  auto taken = takeShared(device(), size, "allocating device memory for tables");
  if (!taken.ok())
    return {};
  const auto begin = reinterpret_cast<uint64_t>((*taken)->begin);
  memory->keep(std::move(*taken));
  return ArenaSpace::Piece{begin - reinterpret_cast<uint64_t>(memory->onDevice()), size};
}

Status CudaRank::startCalls(const PairGeometry &pairs) {
  const OrderedGeometry sizes =
      geometryIn(later ? wholeBytes() : memory->bytes(), memory->hasWideLines(), later != nullptr);
  // Where parts lie elsewhere the rest is in the same place on all ranks, as nothing else is taken.
  std::optional<OrderedConnectors::Pieces> reserved;
  if (later && !(reserved = OrderedConnectors::take(context(), sizes)))
    return invalid("arenaBytes is too little for calls in streams");
  scaledInputs = std::make_unique<ScaledInputs>(*memory, *deviceSpace, maxBlocks);
  // Calls in streams and lanes bind plans at the same time, so each has room of its own.
  const auto withRoom = [&](std::unique_ptr<std::byte[]> &room) {
    room = std::make_unique_for_overwrite<std::byte[]>(kRoomBytes);
    ShapeContext made = context();
    made.room = {room.get(), kRoomBytes};
    return made;
  };
  auto resident = ResidentRank::make(fabric,
                                     {device(), options.executors, options.isStrict,
                                      options.timeout, options.scheduler, options.firstCall,
                                      &laneBoardOf(fabric), scaledInputs.get()},
                                     withRoom(rooms[1]));
  if (!resident.ok())
    return resident.status();
  residents = std::move(*resident);
  controlBlockOf(fabric, fabric.rank())->executors.store(residents->numExecutors());
  auto watching =
      HostWatch::start(fabric, device(),
                       {[this](const GivingUp &where) { return describe(where); },
                        [this](uint32_t place) { return describeShape(place); },
                        [this](uint32_t rank) { return residents->describeWaitFor(rank); },
                        [this] {
                          residents->lookAfter();
                          if (later)
                            later->tend();
                          if (CudaParts *parts = tended.load(std::memory_order_acquire))
                            parts->tidy();
                        }});
  if (!watching.ok())
    return watching.status();
  watch = std::move(*watching);
  // Pinned memory for tables, then calls and transfers in streams.
  auto ring = UploadRing::make(device());
  if (!ring.ok())
    return ring.status();
  uploads = std::move(*ring);
  ShapeContext ofCalls = withRoom(rooms[0]);
  ofCalls.uploads = uploads.get();
  ordered = std::make_unique<OrderedCalls>(
      fabric, ofCalls, *watch, *scaledInputs,
      OrderedCalls::Settings{device(), options.streams, options.timeout, options.firstCall,
                             options.leaveAfter, startsEarly, sizes, reserved, crossing.get()});
  auto streamed =
      StreamTransfers::make(fabric, *memory, later.get(), pairs, *watch, options.timeout);
  if (!streamed.ok())
    return streamed.status();
  transfers = std::move(*streamed);
  partitioned = std::make_unique<CudaParts>(fabric, *memory, *deviceSpace, *watch,
                                            options.scheduler->bell, options.timeout);
  if (Status prepared = partitioned->prepare(); !prepared.ok())
    return prepared;
  collectives = std::make_unique<CudaCollectives>(fabric, *memory, *deviceSpace, *watch, *residents,
                                                  *partitioned);
  // Last, since the watch's thread may use it from here on.
  tended.store(partitioned.get(), std::memory_order_release);
  return {};
}

/// The kernels of this rank end before its memory goes. CUDA frees nothing before the device has
/// done all that it was given, by whomever: if it does not get round to that in time, what kernels
/// may still access stays until the process ends.
CudaRank::~CudaRank() {
  // Others on the same device that wait for this rank leave, too.
  fabric.leave();
  const bool haveLeft = !residents || residents->detach();
  if (watch)
    watch->endAll();
  OnDevice on(device());
  const bool isIdle = haveLeft && awaitIdle(device(), kEndPatience);
  if (!isIdle)
    abandon();
  crossing.reset();
  watch.reset(); // whose thread asks the others
  collectives.reset();
  residents.reset();
  ordered.reset();
  uploads.reset();
  transfers.reset();
  partitioned.reset();
  later.reset();
}

void CudaRank::abandon() {
  std::fprintf(
      stderr,
      "occl: rank %u: CUDA device %d is busy %lld ms after its communicator was destroyed; "
      "%llu MiB of it stay taken until the process ends. Destroy communicators when what "
      "was launched before has ended\n",
      fabric.rank(), device(), static_cast<long long>(kEndPatience.count()),
      static_cast<unsigned long long>(memory ? memory->bytesOnDevice() >> 20 : 0));
  if (watch)
    watch->abandon();
  if (later)
    later->abandon();
  if (memory)
    memory->abandon();
  if (residents)
    residents->abandon();
  if (transfers)
    transfers->abandon();
  if (partitioned)
    partitioned->abandon();
  if (ordered)
    ordered->abandon();
  if (uploads)
    uploads->abandon();
}

/// One deadline for all: each part may have something that never ends.
void CudaRank::drain() {
  const auto inStreams =
      drainPatience({ordered->longestTimeout(), transfers->longestTimeout()}, kDrainGrace);
  const Deadline deadline(std::max(residents->drainPatience(), inStreams));
  residents->drain(deadline);
  // Polled until the deadline: calls without one may never end.
  const auto await = [&](auto &calls) {
    for (auto isOver = calls.isOver();
         isOver.ok() && !*isOver && !fabric.failed() && !deadline.passed(); isOver = calls.isOver())
      sleepFor(std::chrono::microseconds(50));
  };
  await(*ordered);
  await(*transfers);
  await(*partitioned);
}

/// The device is not asked while it may not answer: kernels that wait have said so by then, and
/// take some milliseconds to say that they do not any more.
bool CudaRank::isBusy() {
  constexpr auto kPatience = std::chrono::milliseconds(20);
  for (Deadline deadline(kPatience); watch->mayHoldUp(); sleepFor(std::chrono::milliseconds(1)))
    if (deadline.passed())
      return true;
  const auto areOver = [](const StatusOr<bool> &isOver) { return isOver.ok() && *isOver; };
  return residents->countOpen() != 0 || !areOver(ordered->isOverNow()) ||
         !areOver(transfers->isOverNow()) || !areOver(partitioned->isOverNow());
}

ShapeContext CudaRank::context() {
  ArenaSpace &space = hostSpace ? *hostSpace : *deviceSpace;
  return {.memory = *memory,
          .space = space,
          .onDevice = *deviceSpace,
          .rank = fabric.rank(),
          .numRanks = fabric.numRanks(),
          .maxBlocks = maxBlocks,
          .later = later.get()};
}

uint32_t CudaRank::mostStartedBlocks() const {
  uint32_t most = ~0u;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    most = std::min(most, controlBlockOf(fabric, r)->executors.load(std::memory_order_relaxed));
  return most;
}

/// The last line of a report.
std::string CudaRank::describePath() const {
  const std::string &why = memory->throughHost();
  return why.empty() ? "data goes from device to device\n"
                     : "data goes through host memory: " + why + "\n";
}

Status CudaRank::checkNotCaptured(cudaStream_t stream) const {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  OnDevice on(device());
  Status asked = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (!asked.ok() || capture == cudaStreamCaptureStatusNone)
    return asked;
  return invalid("the stream is captured: each replay of a graph would need a start of its own. "
                 "Use occlCall there, which becomes a node of the graph");
}

/// Lanes and partitioned requests lie in memory that all ranks have from the beginning.
Status CudaRank::checkTakesAll() const {
  return options.asNeeded ? invalid("the communicator takes memory as calls in streams need it "
                                    "(asNeeded of its configuration), and has none for others")
                          : Status();
}

StatusOr<daemon::RequestId> CudaRank::start(const Start &call) {
  if (Status hasMemory = checkTakesAll(); !hasMemory.ok())
    return hasMemory;
  if (crossing)
    return invalid(
        "ranks of several machines start no calls on devices yet; occlCall, in a stream, "
        "does");
  daemon::CollectiveSpec spec = call.spec;
  const LaneSignature signature = agreeOn(spec, call.kind, call.root);
  ResidentRank::Order order = {.spec = spec,
                               .signature = signature,
                               .input = call.input,
                               .output = call.output,
                               .factor = call.factor,
                               .after = {},
                               .callback = call.callback};
  if (call.after) {
    order.after = static_cast<cudaStream_t>(*call.after);
    if (Status usable = checkNotCaptured(*order.after); !usable.ok())
      return usable;
  }
  return residents->start(order);
}

Status CudaRank::holdStream(void *stream, daemon::RequestId request) {
  auto held = static_cast<cudaStream_t>(stream);
  Status usable = checkNotCaptured(held);
  return usable.ok() ? residents->holdStream(held, request) : usable;
}

std::string CudaRank::describe(const GivingUp &where) {
  if (where.place == kTransferPlace)
    return transfers->describe(where);
  if (where.place == kPartPlace)
    return partitioned->describe(where, collectives->subjectOf(where.context.instruction));
  const auto called = ordered->reported(where.place);
  return called ? describeGivingUp(where, *called, fabric.rank())
                : "rank " + std::to_string(fabric.rank()) + " gave up in a call that is long over";
}

std::string CudaRank::describeShape(uint32_t place) {
  if (place == kTransferPlace)
    return "of sends and receives";
  if (place == kPartPlace)
    return "of partitioned requests";
  const auto called = ordered->reported(place);
  return called ? describeCall(*called) : "that is long over";
}

/// After a failure others may still store to what was a partitioned receive's: it is given to
/// nobody any more.
void *CudaRank::allocate(uint64_t bytes) {
  if (fabric.failed() && partitioned->hasReceived())
    return nullptr;
  auto offset = deviceSpace->lend(bytes);
  return offset ? memory->onDevice() + *offset : nullptr;
}

bool CudaRank::release(void *block) {
  auto offset = memory->offsetOf(block, 0);
  return offset && deviceSpace->takeBack(*offset);
}

} // namespace occl::cuda
