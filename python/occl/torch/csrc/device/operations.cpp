// How operations on CUDA tensors are called and started.
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

#include <thread>

#include "../signals.h"
#include "group.h"

namespace occl_torch {

namespace {

using Clock = std::chrono::steady_clock;

// The k-th asynchronous call of a group has id k % kDeviceIds: so many are executed in any order,
// and each finds the memory for messages that an earlier one had.
constexpr uint64_t kDeviceIds = 32;

// Purposes of streams, beside those of sends to (2 q) and receives from (2 q + 1) rank q.
constexpr int kSide = -1, kPieces = -2;

// attempt(handle) again and again as long as it is occlAgain, until the deadline; what it was last.
// `order` is held in attempts, and not while signals are looked after.
template <class Attempt>
occlResult_t untilTaken(Communicator &communicator, std::unique_lock<std::mutex> &order,
                        Clock::time_point deadline, const Attempt &attempt) {
  auto heard = Clock::now();
  while (true) {
    {
      Communicator::Use use(communicator);
      const occlResult_t result = use ? attempt(use.handle()) : occlAborted;
      if (result != occlAgain || Clock::now() > deadline)
        return result;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (Clock::now() - heard < kSignalSlice)
      continue;
    order.unlock();
    checkSignals();
    order.lock();
    heard = Clock::now();
  }
}

} // namespace

/// A collective.
struct DeviceGroup::Job {
  DeviceHow how;
  occlCall_t call = OCCL_CALL_INITIALIZER;
  std::string scalar;
  std::vector<at::Tensor> held, results;
  std::function<void()> then; // kernels after it
};

/// The user pointer of a callback: what has to live until the request has ended.
struct DeviceGroup::Started {
  std::shared_ptr<DevicePart> part;
  std::shared_ptr<Communicator> comm;
  const char *name;
  std::vector<at::Tensor> held;

  static void ended(occlRequest_t, occlResult_t result, void *user) {
    // Tensors may need the interpreter: not here.
    std::shared_ptr<Started> started(static_cast<Started *>(user));
    started->part->ended(result == occlSuccess ? nullptr
                                               : started->comm->failure(started->name, result));
    Helper::get().release(std::move(started));
  }
};

// The next work of the stream, which may be captured.
void DeviceGroup::call(Job &job, DevicePart &part, const c10::Stream &stream) {
  {
    const auto deadline = Clock::now() + std::chrono::milliseconds(job.how.timeoutMs);
    std::unique_lock<std::mutex> order(calls_);
    // occlAgain: calls that wait hold the connections of the device.
    const occlResult_t result = untilTaken(*comm_, order, deadline, [&](occlComm_t comm) {
      return occl().occlCall(comm, &job.call, handleOf(stream));
    });
    if (result != occlSuccess)
      std::rethrow_exception(comm_->failure(job.how.name, result));
  }
  if (job.then)
    job.then();
  part.endWith(stream, isCaptured(stream));
}

// After what the stream has; executed by the resident daemon.
void DeviceGroup::start(Job &job, const std::shared_ptr<DevicePart> &part,
                        const c10::Stream &stream) {
  CUstream_st *const after = handleOf(stream);
  job.call.after = &after;
  job.call.callbacksNeverBlock = 1;
  if (job.then)
    part->moreFollows();
  auto started = std::make_unique<Started>(Started{part, comm_, job.how.name, job.held});
  occlRequest_t request = 0;
  const auto deadline = Clock::now() + std::chrono::milliseconds(job.how.timeoutMs);
  {
    std::unique_lock<std::mutex> order(calls_);
    // occlAgain: the id's call before, kDeviceIds calls ago, is not over and needs another kernel.
    const occlResult_t result = untilTaken(*comm_, order, deadline, [&](occlComm_t comm) {
      job.call.id = next_ % kDeviceIds;
      return occl().occlStart(comm, &job.call, Started::ended, started.get(), &request);
    });
    if (result != occlSuccess)
      std::rethrow_exception(comm_->failure(job.how.name, result));
    started.release(); // the callback's
    ++next_;
  }
  part->setRequest(request);
  if (!job.then)
    return;
  const c10::Stream side = streamFor(kSide);
  part->holdBack(side);
  c10::StreamGuard guard(side);
  job.then();
  for (const auto *tensors : {&job.held, &job.results})
    for (const at::Tensor &tensor : *tensors)
      tensor.record_stream(side);
  part->endWith(side, false);
}

DeviceWorkPtr DeviceGroup::execute(Job job) {
  const c10::DeviceGuard guard(*device_);
  const c10::Stream stream = currentStream(*device_);
  job.call.name = job.how.name;
  job.call.timeoutMs = job.how.timeoutMs;
  job.call.scalar = job.scalar.empty() ? nullptr : job.scalar.data();
  auto part = std::make_shared<DevicePart>(comm_, job.how.name, stream);
  if (job.how.async && !isCaptured(stream))
    start(job, part, stream);
  else
    call(job, *part, stream);
  return workOf(job.how, std::move(job.results), std::move(part));
}

DeviceWorkPtr DeviceGroup::workOf(const DeviceHow &how, std::vector<at::Tensor> outputs,
                                  std::shared_ptr<DevicePart> part) {
  const c10::Stream side = streamFor(kSide);
  std::lock_guard<std::mutex> lock(mutex_);
  return c10::make_intrusive<DeviceWork>(rank_, how.type, how.name, std::move(outputs),
                                         DeviceWork::Parts{std::move(part)}, side, number_++);
}

DeviceWorkPtr DeviceGroup::reduce(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                                  const at::Tensor &output, uint64_t count,
                                  const c10d::ReduceOp &op, int64_t root) {
  connect(input.device(), how.name);
  Reduction reduction = reductionOf(input.scalar_type(), op);
  if (reduction.gathered) {
    const c10::DeviceGuard guard(input.device());
    at::Tensor parts = at::empty({size_, static_cast<int64_t>(count)},
                                 input.options().memory_format(at::MemoryFormat::Contiguous));
    const bool mine = kind != occlKindReduce || root == rank_;
    return copyAnd(how, kind == occlKindReduceScatter ? occlKindAllToAll : occlKindAllGather, input,
                   parts, count, 0, {output}, [parts, output, op, mine] {
                     if (mine)
                       reduceLocally(parts, output, op);
                   });
  }
  Job job{how};
  job.call.kind = kind;
  job.call.sendBuffer = input.const_data_ptr();
  job.call.recvBuffer = output.data_ptr();
  job.call.count = count * reduction.perElement;
  job.call.dataType = reduction.type;
  job.call.op = reduction.op;
  job.call.root = static_cast<uint32_t>(root);
  job.scalar = std::move(reduction.scalar);
  job.held = {input, output};
  job.results = {output};
  return execute(std::move(job));
}

DeviceWorkPtr DeviceGroup::copy(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                                const at::Tensor &output, uint64_t count, int64_t root) {
  return copyAnd(how, kind, input, output, count, root, {output}, nullptr);
}

DeviceWorkPtr DeviceGroup::copyAnd(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                                   const at::Tensor &output, uint64_t count, int64_t root,
                                   std::vector<at::Tensor> results, std::function<void()> then) {
  connect(input.device(), how.name);
  const Elements whole = elementsOf(input);
  const uint64_t perElement = input.numel() == 0 ? 1 : whole.count / input.numel();
  Job job{how};
  job.call.kind = kind;
  job.call.sendBuffer = input.const_data_ptr();
  job.call.recvBuffer = output.data_ptr();
  job.call.count = count * perElement;
  job.call.dataType = whole.type;
  job.call.root = static_cast<uint32_t>(root);
  job.held = {input, output};
  job.results = std::move(results);
  job.then = std::move(then);
  return execute(std::move(job));
}

// --- Transfers.

void DeviceGroup::transferIn(const c10::Stream &stream, const char *name,
                             const std::vector<DevicePiece> &sends,
                             const std::vector<DevicePiece> &receives) {
  std::lock_guard<std::mutex> order(calls_);
  Communicator::Use use(*comm_);
  if (!use)
    std::rethrow_exception(comm_->failure(name, occlAborted));
  CUstream_st *const handle = handleOf(stream);
  occlResult_t result = occl().occlGroupStart(), refused = occlSuccess;
  std::exception_ptr why;
  const auto note = [&](occlResult_t one) {
    if (one != occlSuccess && refused == occlSuccess) {
      refused = one;
      why = comm_->failure(name, one); // while the text is there
    }
  };
  for (const DevicePiece &piece : receives) {
    const Elements elements = elementsOf(piece.tensor);
    note(occl().occlRecv(piece.tensor.data_ptr(), elements.count, elements.type, piece.peer,
                         use.handle(), handle));
  }
  for (const DevicePiece &piece : sends) {
    const Elements elements = elementsOf(piece.tensor);
    note(occl().occlSend(piece.tensor.const_data_ptr(), elements.count, elements.type, piece.peer,
                         use.handle(), handle));
  }
  result = occl().occlGroupEnd();
  if (why)
    std::rethrow_exception(why);
  if (result != occlSuccess)
    std::rethrow_exception(comm_->failure(name, result));
}

DeviceWorkPtr DeviceGroup::transfer(const DeviceHow &how, const std::vector<DevicePiece> &sends,
                                    const std::vector<DevicePiece> &receives,
                                    std::vector<at::Tensor> results) {
  const at::Tensor &first = (sends.empty() ? receives : sends)[0].tensor;
  connect(first.device(), how.name);
  const c10::DeviceGuard guard(*device_);
  const c10::Stream current = currentStream(*device_);
  const bool captured = isCaptured(current);
  const bool own = how.async && !captured;
  const bool isMessage = sends.size() + receives.size() == 1;
  const c10::Stream stream =
      !own ? current
      : isMessage
          ? streamFor(2 * (sends.empty() ? receives : sends)[0].peer + (sends.empty() ? 1 : 0))
          : streamFor(kPieces);
  if (own) {
    markOf(current)->block(stream);
    for (const auto *pieces : {&sends, &receives})
      for (const DevicePiece &piece : *pieces)
        piece.tensor.record_stream(stream);
  }
  transferIn(stream, how.name, sends, receives);
  auto part = std::make_shared<DevicePart>(comm_, how.name, stream);
  part->endWith(stream, captured);
  return workOf(how, std::move(results), std::move(part));
}

DeviceWorkPtr DeviceGroup::message(const DeviceHow &how, const DevicePiece &piece, bool isSend) {
  if (isSend)
    return transfer(how, {piece}, {}, {});
  return transfer(how, {}, {piece}, {piece.tensor});
}

DeviceWorkPtr DeviceGroup::combine(const std::vector<c10::intrusive_ptr<c10d::Work>> &works) {
  DeviceWork::Parts parts;
  std::vector<at::Tensor> outputs;
  for (const auto &work : works) {
    auto *one = dynamic_cast<DeviceWork *>(work.get());
    if (!one)
      C10_THROW_ERROR(ValueError, "occl: a coalesced operation has tensors of CPUs and of CUDA "
                                  "devices: make it two");
    parts.insert(parts.end(), one->parts().begin(), one->parts().end());
    for (const at::Tensor &output : one->result())
      outputs.push_back(output);
  }
  const c10::Stream side = streamFor(kSide);
  std::lock_guard<std::mutex> lock(mutex_);
  return c10::make_intrusive<DeviceWork>(rank_, c10d::OpType::COALESCED, "coalesced",
                                         std::move(outputs), std::move(parts), side, number_++);
}

} // namespace occl_torch
