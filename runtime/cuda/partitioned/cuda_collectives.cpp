// Partitioned collectives: each epoch is a call of the resident daemon, whose gates are words in
// device memory.
#include "runtime/cuda/partitioned/cuda_collectives.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/partitioned/gate_table.h"
#include "runtime/cuda/watch/stream_first_use.h"
#include "runtime/exec/bind/bind.h"

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace occl::cuda {

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// Of a request's number, in a word that those of sends and receives have as well.
constexpr uint32_t kSerialOfCollective = 1u << 31;

/// Its number.
StatusOr<unsigned long long> useStreamOf(cudaStream_t stream) {
  unsigned long long number = 0;
  Status status = toStatus(cudaStreamGetId(stream, &number), "asking which stream it is");
  if (status.ok())
    status = useStream(stream, number);
  return status.ok() ? StatusOr<unsigned long long>(number) : status;
}

/// Of a buffer: an executor looks at all that a thread block reads, some thousand in a microsecond.
constexpr uint64_t kMostPartitions = 1 << 16;

} // namespace

CollectivePart::CollectivePart(CudaCollectives &owner, const CollectiveTerms &terms)
    : owner(owner), spec(terms.spec), buffers(terms.buffers),
      subject("partitioned " + terms.spec.plan->collective) {
  signature = agreeOn(spec, terms.kind, terms.root);
}

Status CollectivePart::start(void *stream) {
  return owner.start(*this, static_cast<cudaStream_t>(stream));
}
Status CollectivePart::mark(plan::Range range, void *stream) {
  return owner.mark(*this, range, static_cast<cudaStream_t>(stream));
}
Status CollectivePart::prepare(void *) {
  return invalid(subject + ": only sends and receives can be prepared");
}
Status CollectivePart::wait(void *stream) {
  return owner.wait(*this, static_cast<cudaStream_t>(stream));
}
Status CollectivePart::release() { return owner.release(*this); }

ResidentRank::Order CollectivePart::order() const {
  return {.spec = spec,
          .signature = signature,
          .input = buffers.input,
          .output = buffers.output,
          .factor = {},
          .after = {},
          .callback = {},
          .parts = gates};
}

uint32_t CollectivePart::serial() const {
  return kSerialOfCollective | static_cast<uint32_t>(*transport::partitionedCollectiveOf(spec.id));
}

std::string CollectivePart::subjectOfEpoch() const {
  return subject + ", epoch " + std::to_string(started);
}

// --- requests are made ---

Status CudaCollectives::check(const CollectiveTerms &terms) const {
  if (fabric.failed())
    return fabric.failure();
  if (memory.isAcrossMachines())
    return invalid("this communicator spans machines, between which there are no partitioned "
                   "collectives yet; use one within a machine");
  if (!terms.factor.isNone())
    return invalid("partitioned collectives on devices have no scalar yet");
  return {};
}

/// Of the buffers that this rank has.
Status CudaCollectives::divide(CollectivePart &part, const interpreter::Binding &bound) const {
  const plan::Plan &plan = *part.spec.plan;
  const plan::Aliasing aliasing(plan, fabric.rank(), part.spec.count, sizeOf(part.spec.type));
  auto divided = partitioned::divide(part.buffers, plan.ranks[fabric.rank()], aliasing,
                                     part.spec.type, bound.inputBytes(), bound.outputBytes());
  if (!divided.ok())
    return {divided.status().code(), part.subject + ": " + divided.status().message()};
  for (const uint64_t partitions : {divided->input.partitions, divided->output.partitions})
    if (partitions > kMostPartitions)
      return invalid(part.subject + ": " + std::to_string(partitions) +
                     " partitions are too many on a device: at most " +
                     std::to_string(kMostPartitions));
  part.divided = *divided;
  return {};
}

/// Bound for its geometry alone: what of the buffers its thread blocks access is the same however
/// messages are cut.
StatusOr<DevicePart *> CudaCollectives::make(const CollectiveTerms &terms) {
  if (Status checked = check(terms); !checked.ok())
    return checked;
  OnDevice on(memory.device());
  // Bind and divide: this needs no lock, and refuses terms that make no sense.
  auto part = std::make_unique<CollectivePart>(*this, terms);
  auto bound = residents.bind(part->spec);
  if (!bound.ok())
    return bound.status();
  if (Status divided = divide(*part, **bound); !divided.ok())
    return divided;
  // A number, the words on the device, then the daemon's tables.
  std::lock_guard makes(making);
  if (Status numbered = giveNumber(*part); !numbered.ok())
    return numbered;
  const auto undo = [this](CollectivePart *refused) { takeBack(*refused); };
  std::unique_ptr<CollectivePart, decltype(undo)> made(part.get(), undo);
  Status status = place(*part, (*bound)->program());
  if (status.ok())
    status = residents.prepare(part->order());
  if (!status.ok())
    return refused(*part, status);
  std::lock_guard lock(mutex);
  all[nextNumber] = std::move(part);
  ++nextNumber;
  return static_cast<DevicePart *>(made.release());
}

/// Nothing of it stays, and the number goes to the next request.
void CudaCollectives::takeBack(CollectivePart &part) {
  if (!part.gates)
    return;
  residents.forget(part.spec.id, part.gates);
  space.release(part.piece);
}

/// Other ranks, where the terms are as good and memory is left, have a request of this number.
/// If this rank makes another in its place, that is found by what both say at its first epoch.
Status CudaCollectives::refused(const CollectivePart &part, const Status &why) {
  if (why.code() == StatusCode::InvalidArgument || why.code() == StatusCode::InvalidPlan)
    return why;
  const bool isNamed = why.message().find(part.subject) != std::string::npos;
  return {why.code(), (isNamed ? "" : part.subject + ": ") + why.message() +
                          ". Other ranks may have made it: unless all are refused, make it "
                          "again, before any other partitioned collective of this communicator"};
}

/// What kernels have of it, in the rank's own memory.
Status CudaCollectives::place(CollectivePart &part, const interpreter::Program &program) {
  auto sends = transfers.sendsOfAll();
  if (!sends.ok())
    return sends.status();
  // State, marks, outputs and gates lie in one piece of memory.
  const GateTable table(program, part.divided);
  const GateLayout layout(sizeof(device::State), part.divided.input.partitions, table);
  std::vector<char> image(layout.bytes);
  const auto piece = space.allocate(layout.bytes);
  if (!piece)
    return {StatusCode::Again, part.subject + ": there is no room for its words, " +
                                   std::to_string(layout.bytes) +
                                   " bytes: free other requests, or memory of occlMemAlloc, or set "
                                   "arenaBytes higher"};
  char *const block = memory.onDevice() + piece->offset;
  device::State state{};
  state.side = device::Side::Collective;
  state.partitions = part.divided.input.partitions;
  state.outputs = reinterpret_cast<device::OutputPartition *>(block + layout.outputs);
  state.numOutputs = part.divided.output.partitions;
  state.marked = reinterpret_cast<uint64_t *>(block + layout.marked);
  const WaitBound bound = watch.bound(kPartPlace, 0);
  state.watch = CudaParts::hostSideOf(bound);
  state.sends = *sends;
  state.numBlocks = table.numBlocks;
  PartGates gates{};
  gates.state = reinterpret_cast<device::State *>(block);
  gates.ranges = reinterpret_cast<const PartitionRange *>(block + layout.ranges);
  gates.firstRead = reinterpret_cast<const uint32_t *>(block + layout.firstRead);
  gates.firstMade = reinterpret_cast<const uint32_t *>(block + layout.firstMade);
  gates.numBlocks = table.numBlocks;
  gates.atEnd = table.atEnd;
  gates.bound = bound;
  gates.serial = part.serial();

  const auto put = [&](uint64_t at, const void *from, uint64_t bytes) {
    if (bytes != 0)
      std::memcpy(image.data() + at, from, bytes);
  };
  put(0, &state, sizeof state);
  put(layout.outputs, table.outputs.data(), table.outputs.size() * sizeof table.outputs[0]);
  put(layout.gates, &gates, sizeof gates);
  put(layout.ranges, table.ranges.data(), table.ranges.size() * sizeof(PartitionRange));
  put(layout.firstRead, table.firstRead.data(), table.firstRead.size() * sizeof(uint32_t));
  put(layout.firstMade, table.firstMade.data(), table.firstMade.size() * sizeof(uint32_t));
  // What could not be brought there may still be on its way: the piece is nobody's any more.
  if (Status uploaded = memory.upload(block, image.data(), image.size()); !uploaded.ok())
    return uploaded;
  part.piece = *piece;
  part.onDevice = reinterpret_cast<device::State *>(block);
  part.gates = reinterpret_cast<const PartGates *>(block + layout.gates);
  return {};
}

/// With the lock: the next one, which others get if it is refused. Each epoch in flight has a lane,
/// and as many are left for calls after streams. Ranks that make and free alike are told alike.
Status CudaCollectives::giveNumber(CollectivePart &part) {
  if (all.size() >= residents.mostEpochs())
    return {StatusCode::Again, part.subject + ": there are " + std::to_string(all.size()) +
                                   " requests, as many as this communicator can have epochs of in "
                                   "flight: free some, or set arenaBytes higher"};
  part.spec.id = transport::partitionedIdOf(nextNumber);
  part.subject += ", request " + std::to_string(nextNumber);
  part.spec.name = part.subject;
  return {};
}

// --- epochs ---

StatusOr<unsigned long long> CudaCollectives::checkStream(const CollectivePart &part,
                                                          cudaStream_t stream) const {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (!status.ok())
    return status;
  if (capture != cudaStreamCaptureStatusNone)
    return invalid(part.subject + ": the stream is captured, and epochs of collectives are begun "
                                  "and waited for by the host; its marks may be captured");
  return useStreamOf(stream);
}

Status CudaCollectives::start(CollectivePart &part, cudaStream_t stream) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  if (part.started != part.awaited)
    return invalid(part.subjectOfEpoch() + ", has no wait yet: occlPwaitOn comes before the next "
                                           "start");
  auto number = checkStream(part, stream);
  if (!number.ok())
    return number.status();
  // The call begins when the stream has come so far, behind the kernel that starts the epoch.
  ResidentRank::Order order = part.order();
  order.after = stream;
  order.epoch = part.started + 1;
  order.begin = [&] {
    return toStatus(
        static_cast<cudaError_t>(launchCollectiveStart(part.onDevice, part.started + 1, stream)),
        "launching the start of a partitioned collective");
  };
  // From now on a kernel may wait for what daemons do.
  auto isOver = std::make_shared<Atomic<bool>>(false);
  order.ended = [isOver] { isOver->store(true, std::memory_order_release); };
  if (held.isWatched())
    held.enterUntil(*number, [isOver] { return isOver->load(std::memory_order_acquire); });
  auto request = residents.start(order);
  if (!request.ok()) {
    order.ended();
    return request.status();
  }
  part.request = *request;
  ++part.started;
  return {};
}

Status CudaCollectives::mark(CollectivePart &part, plan::Range range, cudaStream_t stream) {
  const uint64_t partitions = part.divided.input.partitions;
  if (partitions == 0)
    return invalid(part.subject + ": rank " + std::to_string(fabric.rank()) +
                   " has no input to be marked");
  if (range.begin >= range.end || range.end > partitions)
    return invalid(part.subject + ": there are no partitions " + std::to_string(range.begin) +
                   " to " + std::to_string(range.end - 1) + " of " + std::to_string(partitions) +
                   " of its input");
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (status.ok() && capture == cudaStreamCaptureStatusNone)
    status = useStreamOf(stream).status();
  if (!status.ok())
    return status;
  return toStatus(static_cast<cudaError_t>(
                      launchCollectiveMarks(part.onDevice, range.begin, range.end - 1, stream)),
                  "launching marks of a partitioned collective");
}

/// Its stream is held by the call, and then a kernel looks whether all has been made: after a
/// failure the epoch does not end.
Status CudaCollectives::wait(CollectivePart &part, cudaStream_t stream) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  if (part.started == part.awaited)
    return invalid(part.subject + " has no epoch to be waited for");
  // The wait holds the stream, so a connection must be left.
  Status usable = checkStream(part, stream).status();
  if (usable.ok())
    usable = watch.checkConnections(false);
  if (!usable.ok())
    return usable;
  // First the call ends, then a kernel ends the epoch.
  if (Status held = residents.holdStream(stream, part.request); !held.ok())
    return held;
  ++part.awaited;
  const PartWait wait = {part.onDevice, fabric.rank(), part.serial(), watch.bound(kPartPlace, 0)};
  Status ended = toStatus(static_cast<cudaError_t>(launchCollectiveEnd(wait, part.started, stream)),
                          "launching the end of a partitioned collective");
  if (!ended.ok()) // it never will
    fabric.fail(ended);
  return ended;
}

Status CudaCollectives::release(CollectivePart &part) {
  OnDevice on(memory.device());
  const auto epochs = transfers.epochsOf(part.onDevice);
  if (!epochs.ok())
    return epochs.status();
  const bool isOver = epochs->started == epochs->ended && part.started == part.awaited &&
                      epochs->started == part.started;
  if (!isOver && !fabric.failed())
    return invalid(part.subjectOfEpoch() + ", has not ended: its wait ends before it is freed");
  // Where only streams have waited for its calls nobody has seen that they are complete. Callbacks
  // of other calls are called here, so without the lock.
  residents.settleComplete();
  std::lock_guard makes(making);
  if (isOver) { // else, after a failure, kernels may still look at its words
    residents.forget(part.spec.id, part.gates);
    space.release(part.piece);
  }
  std::lock_guard lock(mutex);
  all.erase(*transport::partitionedCollectiveOf(part.spec.id));
  return {};
}

std::string CudaCollectives::subjectOf(uint32_t serial) {
  if ((serial & kSerialOfCollective) == 0)
    return {};
  std::lock_guard lock(mutex);
  const auto found = all.find(serial & ~kSerialOfCollective);
  return found != all.end() ? found->second->subject : "a partitioned collective that is freed";
}

} // namespace occl::cuda
