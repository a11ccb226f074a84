#include "communicator.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "signals.h"

namespace occl_torch {

uint32_t timeoutOf(std::chrono::milliseconds timeout) {
  const auto longest = OCCL_NO_TIMEOUT - 1;
  const auto count = timeout.count();
  return count <= 0 || count > longest ? longest : static_cast<uint32_t>(count);
}

namespace {

// Of closeAtExit().
std::mutex exitMutex;
std::vector<std::weak_ptr<Communicator>> openAtExit;

} // namespace

std::shared_ptr<Communicator> Communicator::join(int rank, int size, const std::string &name,
                                                 const occlConfig_t &config) {
  std::shared_ptr<Communicator> comm(new Communicator);
  comm->owner_ = getpid();
  const occlResult_t result =
      occl().occlCommInitRank(&comm->handle_, size, rank, name.c_str(), &config);
  if (result != occlSuccess) {
    const std::string text = occl().occlGetLastError();
    comm->closed_ = true;
    comm->handle_ = nullptr;
    C10_THROW_ERROR(DistBackendError, "occl: making a group of " + std::to_string(size) +
                                          " ranks failed on rank " + std::to_string(rank) + ": " +
                                          occl().occlGetErrorString(result) + ": " + text);
  }
  return comm;
}

namespace {

// What comes of `make` after a signal's exception has ended this is closed.
std::shared_ptr<Communicator> hearing(std::function<std::shared_ptr<Communicator>()> make) {
  std::promise<std::shared_ptr<Communicator>> promise;
  auto made = promise.get_future();
  std::thread([make = std::move(make), promise = std::move(promise)]() mutable {
    try {
      promise.set_value(make());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }).detach();
  while (made.wait_for(kSignalSlice) != std::future_status::ready)
    checkSignals();
  return made.get();
}

} // namespace

std::shared_ptr<Communicator> Communicator::joinHearing(int rank, int size, const std::string &name,
                                                        const occlConfig_t &config) {
  // Nothing but the timeout ends it there.
  return hearing([rank, size, name, config] { return join(rank, size, name, config); });
}

std::shared_ptr<Communicator> Communicator::shrink(Communicator &from,
                                                   const std::vector<uint32_t> &excluded,
                                                   const occlConfig_t &config) {
  std::shared_ptr<Communicator> comm(new Communicator);
  comm->owner_ = getpid();
  comm->closed_ = true; // unless it is made
  occlResult_t result = occlAborted;
  std::string why = from.unusable(); // if it is closed
  if (Use use(from); use) {
    result = occl().occlCommShrink(use.handle(), excluded.data(),
                                   static_cast<uint32_t>(excluded.size()), &config, &comm->handle_);
    why = occl().occlGetLastError(); // the communicator's own failure is an older one
  }
  if (result != occlSuccess)
    C10_THROW_ERROR(DistBackendError,
                    std::string("occl: shrink: ") + occl().occlGetErrorString(result) + ": " + why);
  comm->closed_ = false;
  return comm;
}

std::shared_ptr<Communicator> Communicator::shrinkHearing(const std::shared_ptr<Communicator> &from,
                                                          const std::vector<uint32_t> &excluded,
                                                          const occlConfig_t &config) {
  try {
    return hearing([from, excluded, config] { return shrink(*from, excluded, config); });
  } catch (const c10::Error &) { // of the thread, which is over
    throw;
  } catch (...) {
    // The thread is inside of a call with it, which no abort ends, as a group that has failed is
    // what shrinks.
    from->interrupted_ = true;
    from->abort("shrink was interrupted");
    throw;
  }
}

int Communicator::number(occlResult_t (*of)(occlComm_t, uint32_t *), const char *what) {
  uint32_t value = 0;
  occlResult_t result = occlAborted;
  if (Use use(*this); use)
    result = of(use.handle(), &value);
  if (result != occlSuccess)
    std::rethrow_exception(failure(what, result));
  return static_cast<int>(value);
}

void Communicator::broadcast(std::string &text) {
  std::vector<char> bytes(4096, '\0');
  std::copy(text.begin(), text.begin() + std::min(text.size(), bytes.size() - 1), bytes.begin());
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindBroadcast;
  call.sendBuffer = call.recvBuffer = bytes.data();
  call.count = bytes.size();
  call.dataType = occlUint8;
  occlResult_t result = occlAborted;
  if (Use use(*this); use)
    result = occl().occlCall(use.handle(), &call, nullptr);
  if (result != occlSuccess)
    std::rethrow_exception(failure("broadcast", result));
  text = bytes.data();
}

Communicator::~Communicator() { close(); }

Communicator::Use::Use(Communicator &comm) : comm_(comm) {
  comm_.inside_.fetch_add(1);
  open_ = !comm_.closed_;
}

void Communicator::abort(const std::string &why) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reason_.empty())
      reason_ = why;
  }
  if (Use use(*this); use)
    occl().occlCommAbort(use.handle());
}

// True for the one caller that shuts it.
bool Communicator::shut(const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_.exchange(true))
    return false;
  if (reason_.empty())
    reason_ = why;
  return true;
}

void Communicator::leave() { shut("the process group was destroyed"); }

void Communicator::close() {
  if (forked() || !shut("the process group was destroyed"))
    return;
  // A shrink that nobody waits for any more may take as long as the group's timeout says: it has
  // the communicator, which is left to it.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (inside_ != 0) {
    if (interrupted_ && std::chrono::steady_clock::now() > until)
      return;
    std::this_thread::yield();
  }
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  auto end = std::make_shared<End>();
  // Not here: this may be a callback, in which OCCL refuses it, and it may take long.
  std::thread([handle = handle_, end] {
    occl().occlCommDestroy(handle);
    std::lock_guard<std::mutex> lock(end->mutex);
    end->over = true;
    end->changed.notify_all();
  }).detach();
  std::unique_lock<std::mutex> lock(end->mutex);
  end->changed.wait_for(lock, std::chrono::seconds(1), [&] { return end->over; });
}

void Communicator::closeAtExit(const std::shared_ptr<Communicator> &comm) {
  std::lock_guard<std::mutex> lock(exitMutex);
  std::erase_if(openAtExit, [](const auto &other) { return other.expired(); });
  openAtExit.push_back(comm);
}

void Communicator::closeAll() {
  std::vector<std::weak_ptr<Communicator>> all;
  {
    std::lock_guard<std::mutex> lock(exitMutex);
    all.swap(openAtExit);
  }
  for (const auto &each : all)
    if (auto comm = each.lock())
      comm->close();
}

std::string Communicator::describe(const std::string &what, occlResult_t result) {
  std::string text = "occl: " + what + ": ";
  if (result == occlTimeout)
    text += "timeout of the group: "; // the word that programs look for in other backends' errors
  text += occl().occlGetErrorString(result);
  std::string why;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    why = reason_;
  }
  if (Use use(*this); why.empty() && use) {
    const bool refused = result == occlInvalidArgument || result == occlInvalidPlan;
    if (!refused)
      why = occl().occlCommGetLastError(use.handle());
    if (why.empty())
      why = occl().occlGetLastError();
  }
  return why.empty() ? text : text + ": " + why;
}

std::exception_ptr Communicator::failure(const std::string &what, occlResult_t result) {
  return std::make_exception_ptr(c10::DistBackendError(
      c10::SourceLocation{__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      describe(what, result)));
}

bool Communicator::forked() const { return owner_ != getpid(); }

std::string Communicator::whyFailed() {
  Use use(*this);
  return use ? occl().occlCommGetLastError(use.handle()) : "";
}

std::string Communicator::report() {
  Use use(*this);
  if (!use)
    return "";
  std::string text(16384, '\0');
  size_t length = 0;
  if (occl().occlCommReport(use.handle(), text.data(), text.size(), &length) != occlSuccess)
    return "";
  text.resize(std::min(length, text.size() - 1));
  return text;
}

std::string Communicator::unusable() const {
  if (forked())
    return "this process was made by fork() after the process group, which belongs to its parent; "
           "make a process group here, or start workers by 'spawn'";
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

} // namespace occl_torch
