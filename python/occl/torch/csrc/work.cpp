#include "work.h"

#include <algorithm>
#include <sched.h>
#include <thread>

#include "signals.h"

namespace occl_torch {

using std::chrono::steady_clock;

namespace {

// How long a rank looks after its collective itself before it sleeps. With a processor for every
// rank of the machine that would be the whole time of a small one; it is a small part of a large.
constexpr auto kSpin = std::chrono::microseconds(500);

} // namespace

OcclWork::OcclWork(std::shared_ptr<Communicator> comm, std::shared_ptr<Strand> strand, int rank,
                   c10d::OpType type, const char *name, std::vector<at::Tensor> inputs,
                   std::vector<at::Tensor> outputs, unsigned parts)
    : Work(rank, type, (std::string("occl:") + name).c_str(), inputs), comm_(std::move(comm)),
      strand_(std::move(strand)), name_(name), inputs_(std::move(inputs)),
      outputs_(std::move(outputs)), parts_(parts) {}

void OcclWork::partEnded(std::exception_ptr error) {
  if (error) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!firstError_)
      firstError_ = error;
  }
  if (parts_.fetch_sub(1) != 1)
    return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    error = firstError_;
  }
  if (error || !afterwards_)
    return complete(error);
  auto self = c10::intrusive_ptr<OcclWork>::reclaim_copy(this);
  Helper::get().run([self] {
    std::exception_ptr failed;
    try {
      self->afterwards_();
    } catch (...) {
      failed = std::current_exception();
    }
    self->complete(failed);
  });
}

void OcclWork::complete(std::exception_ptr error) {
  std::vector<std::function<void(std::exception_ptr)>> observers;
  bool hasFuture = false;
  finish(error); // of the base class: its state, the profile's event, and waiters
  {
    std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    observers.swap(observers_);
    hasFuture = future_ || resultFuture_;
  }
  cv_.notify_all();
  for (auto &observer : observers)
    observer(error);
  if (hasFuture)
    Helper::get().run(
        [self = c10::intrusive_ptr<OcclWork>::reclaim_copy(this)] { self->fulfil(); });
}

void OcclWork::whenComplete(std::function<void(std::exception_ptr)> observer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!done_) {
      observers_.push_back(std::move(observer));
      return;
    }
  }
  observer(exception_);
}

// Executes what can go on here.
void OcclWork::advance() {
  if (!strand_->empty())
    strand_->drain();
  const occlRequest_t request = request_;
  if (request == 0)
    return;
  if (Communicator::Use use(*comm_); use)
    occl().occlTest(use.handle(), request);
}

bool OcclWork::isCompleted() {
  if (!done_ && !comm_->forked())
    advance();
  return done_;
}

bool OcclWork::isSuccess() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_ && !exception_;
}

std::exception_ptr OcclWork::exception() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return exception_;
}

// True when it is complete.
bool OcclWork::spin() {
  const auto until = steady_clock::now() + kSpin;
  while (!done_) {
    advance();
    if (done_ || steady_clock::now() >= until)
      break;
    sched_yield();
  }
  return done_;
}

bool OcclWork::wait(std::chrono::milliseconds timeout) {
  const auto deadline = steady_clock::now() + boundedOf(timeout);
  const bool bounded = timeout > kNoTimeout;
  if (!done_ && comm_->forked())
    C10_THROW_ERROR(DistBackendError, "occl: " + name_ + ": " + comm_->unusable());
  if (!spin()) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!done_) { // while it sleeps the library's threads go on
      cv_.wait_for(lock, kSignalSlice, [this] { return done_.load(); });
      if (done_)
        break;
      lock.unlock();
      checkSignals();
      if (bounded && steady_clock::now() >= deadline)
        C10_THROW_ERROR(DistBackendError, "occl: " + name_ + ": not complete after wait(timeout=" +
                                              std::to_string(timeout.count()) +
                                              " ms); it goes on. " + comm_->report());
      lock.lock();
    }
  }
  Helper::get().sweep();
  std::unique_lock<std::mutex> lock(mutex_);
  std::vector<at::Tensor> inputs = std::move(inputs_);
  inputs_.clear();
  const std::exception_ptr error = exception_;
  lock.unlock();
  if (error)
    std::rethrow_exception(error);
  return true;
}

void OcclWork::abort() { comm_->abort("Work.abort() was called for " + name_); }

// Completes the futures that were asked for; on a thread that may run Python.
void OcclWork::fulfil() {
  c10::intrusive_ptr<c10::ivalue::Future> future, resultFuture;
  std::exception_ptr error;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(futureFulfilled_, future_ != nullptr))
      future = future_;
    if (!std::exchange(resultFutureFulfilled_, resultFuture_ != nullptr))
      resultFuture = resultFuture_;
    error = exception_;
  }
  if (future && error)
    future->setError(error);
  else if (future)
    future->markCompleted(c10::IValue(outputs_));
  if (resultFuture)
    resultFuture->markCompleted(c10::IValue(
        static_cast<int64_t>(error ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS)));
}

c10::intrusive_ptr<c10::ivalue::Future> OcclWork::getFuture() {
  return future(future_, c10::ListType::create(c10::TensorType::get()));
}

c10::intrusive_ptr<c10::ivalue::Future> OcclWork::getFutureResult() {
  return future(resultFuture_, c10::IntType::get());
}

c10::intrusive_ptr<c10::ivalue::Future>
OcclWork::future(c10::intrusive_ptr<c10::ivalue::Future> &member, c10::TypePtr type) {
  c10::intrusive_ptr<c10::ivalue::Future> result;
  bool late = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!member)
      member = c10::make_intrusive<c10::ivalue::Future>(std::move(type));
    result = member;
    late = done_;
  }
  if (late) // complete() has not seen it
    fulfil();
  return result;
}

void partCallback(occlRequest_t, occlResult_t result, void *user) {
  // Its destructor may need the interpreter, for tensors: not here.
  std::shared_ptr<Part> part(static_cast<Part *>(user));
  if (result == occlSuccess)
    part->work->partEnded();
  else
    part->work->partEnded(part->comm->failure(part->work->name(), result));
  Helper::get().release(std::move(part));
}

} // namespace occl_torch
