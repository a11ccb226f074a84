#include "backend.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <thread>

namespace occl_torch {

namespace {

constexpr int kMaxRanks = 32; // for which OCCL comes with plans
constexpr uint32_t kMessageRequests = 4096;
constexpr size_t kLargeBatch = 4096; // works
constexpr const char *kNoDevicesAcross =
    "the ranks are on several machines, where this backend is for CPU tensors: use "
    "init_process_group('cpu:occl,cuda:nccl') for CUDA tensors, whose NCCL may be OCCL's, by "
    "`occl nccl`";

int checkedSize(int size) {
  if (size > kMaxRanks)
    C10_THROW_ERROR(ValueError, "occl: a process group of " + std::to_string(size) +
                                    " ranks: this backend has groups of 1 to " +
                                    std::to_string(kMaxRanks) + " ranks");
  return size;
}

} // namespace

Backend::Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                 c10::intrusive_ptr<GroupOptions> options)
    : Backend(store, rank, size, options, nullptr,
              meet(*store, rank, checkedSize(size), options->timeout)) {}

Backend::Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                 c10::intrusive_ptr<GroupOptions> options, std::shared_ptr<Communicator> comm,
                 const Meeting &meeting)
    : c10d::Backend(rank, size), options_(std::move(options)), store_(std::move(store)),
      isAcross_(meeting.isAcross), comm_(std::move(comm)), strand_(std::make_shared<Strand>()),
      timeout_(options_->timeout.count()) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = timeoutOf(options_->timeout);
  if (!comm_)
    comm_ = Communicator::joinHearing(rank, size, meeting.collectives, config);
  if (isAcross_)
    Communicator::closeAtExit(comm_);
  // Headers of messages are waited for as long as it takes: see messages.h.
  config.timeoutMs = 0;
  config.maxInFlight = kMessageRequests;
  auto messages = Communicator::joinHearing(rank, size, meeting.messages, config);
  if (isAcross_)
    Communicator::closeAtExit(messages);
  messages_ = std::make_shared<Messages>(std::move(messages), rank, size);
  devices_ = DeviceGroup::make(rank, size, meeting.devices, timeoutOf(options_->timeout),
                               isAcross_ ? kNoDevicesAcross : "");
  c10d::Backend::init();
}

Backend::~Backend() { shutdown(); }

void Backend::shutdown() {
  if (comm_->forked())
    return;
  decltype(coalesced_) left; // released without the mutex
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left.swap(coalesced_);
  }
  devices_->close();
  messages_->leave();
  comm_->close();
}

void Backend::abort() {
  if (comm_->forked())
    return; // it is the parent's
  const std::string why = "rank " + std::to_string(rank_) + " has aborted the process group";
  comm_->abort(why);
  messages_->abort(why);
  devices_->abort(why);
}

c10d::ErrorType Backend::getError() {
  constexpr int kSuccess = 0, kCommError = 2; // as in Backend.hpp
  return static_cast<c10d::ErrorType>(failure().empty() ? kSuccess : kCommError);
}

std::string Backend::failure() {
  if (comm_->forked())
    return comm_->unusable();
  const std::string onDevices = devices_->whyFailed(), onHosts = comm_->whyFailed();
  return onDevices.empty() ? onHosts : onDevices;
}

void Backend::eagerConnectSingleDevice(at::Device device) {
  if (device.is_cuda())
    devices_->connect(device, "init_process_group");
}

void Backend::setTimeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout.count();
  options_->timeout = timeout;
}

uint32_t Backend::timeout(std::chrono::milliseconds ofCall) const {
  return timeoutOf(ofCall == c10d::kUnsetTimeout ? std::chrono::milliseconds(timeout_) : ofCall);
}

void Backend::usable(const char *operation) const {
  const std::string why = comm_->unusable();
  if (!why.empty())
    C10_THROW_ERROR(DistBackendError, std::string("occl: ") + operation + ": " + why);
  Helper::get().sweep();
}

void Backend::checkRoot(int64_t root, const char *operation) const {
  if (root < 0 || root >= size_)
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation + ": rank " +
                                    std::to_string(root) + " is none of this group of " +
                                    std::to_string(size_));
}

// All ranks of the new group come here; the others of this one may or may not.
c10::intrusive_ptr<c10d::Backend>
Backend::split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
               const c10::intrusive_ptr<c10d::Backend::Options> &options) {
  usable("split");
  const std::string name = groupName(*options);
  int count = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    count = splits_[name]++;
  }
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  if (mine == ranks.end())
    return nullptr;
  auto space = c10::make_intrusive<c10d::PrefixStore>(
      "occl/" + name + "/" + std::to_string(count) + "/", store);
  return c10::make_intrusive<Backend>(space, static_cast<int>(mine - ranks.begin()),
                                      static_cast<int>(ranks.size()),
                                      c10::make_intrusive<GroupOptions>(options->timeout));
}

c10::intrusive_ptr<c10d::Backend>
Backend::shrink(const std::vector<int64_t> &excluded, int flags,
                const c10::intrusive_ptr<c10d::Backend::Options> &options) {
  constexpr int kAbort = 1; // SHRINK_ABORT
  if (comm_->forked())
    usable("shrink"); // a group that has failed is what this is for
  std::set<uint32_t> without;
  for (const int64_t rank : excluded) {
    checkRoot(rank, "shrink");
    if (rank == rank_)
      C10_THROW_ERROR(ValueError, "occl: shrink: rank " + std::to_string(rank) +
                                      " calls, and is to be left out");
    without.insert(static_cast<uint32_t>(rank));
  }
  if ((flags & kAbort) != 0)
    abort();
  auto with = c10::make_intrusive<GroupOptions>(options ? options->timeout
                                                        : std::chrono::milliseconds(timeout_));
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = timeoutOf(with->timeout);
  auto comm = Communicator::shrinkHearing(comm_, {without.begin(), without.end()}, config);
  const int rank = comm->rank(), size = comm->size(), wanted = size_ - int(without.size());
  if (size != wanted)
    C10_THROW_ERROR(DistBackendError,
                    "occl: shrink: of " + std::to_string(wanted) + " ranks that are not left out " +
                        std::to_string(size) +
                        " are there: the others have died, or have not called within the timeout");
  const Meeting meeting =
      meetAgain(*store_, rank, size, isAcross_, [&](std::string &text) { comm->broadcast(text); });
  return c10::make_intrusive<Backend>(store_, rank, size, with, std::move(comm), meeting);
}

// --- Works.

WorkPtr Backend::newWork(c10d::OpType type, const char *name, Tensors inputs, Tensors outputs,
                         unsigned parts) {
  auto work = c10::make_intrusive<OcclWork>(comm_, strand_, rank_, type, name, std::move(inputs),
                                            std::move(outputs), parts);
  work->setSequenceNumber(number_++);
  return work;
}

// Into the innermost batch that this thread has open.
c10::intrusive_ptr<Work> Backend::started(c10::intrusive_ptr<Work> work) {
  Works grown;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto open = coalesced_.find(std::this_thread::get_id());
    if (open == coalesced_.end())
      return work;
    Batch &batch = open->second.back();
    batch.works.push_back(work);
    if (batch.works.size() < batch.sweepAt)
      return work;
    grown.swap(batch.works);
  }
  // Without the mutex: what is released may need the interpreter.
  std::erase_if(grown, [](const auto &one) { return one->isCompleted() && one->isSuccess(); });
  std::lock_guard<std::mutex> lock(mutex_);
  const auto open = coalesced_.find(std::this_thread::get_id());
  if (open != coalesced_.end()) { // else the group has been destroyed
    Batch &batch = open->second.back();
    batch.sweepAt = std::max(kLargeBatch, 2 * grown.size());
    batch.works = std::move(grown);
  }
  return work;
}

// PyTorch leaves a batch open for ever when an exception comes in it: so a large one does not keep
// what is complete.
void Backend::startCoalescing() { openBatch(kLargeBatch); }

void Backend::openBatch(size_t sweepAt) {
  std::lock_guard<std::mutex> lock(mutex_);
  coalesced_[std::this_thread::get_id()].push_back({{}, sweepAt});
}

Backend::Works Backend::closeBatch() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto open = coalesced_.find(std::this_thread::get_id());
  if (open == coalesced_.end())
    C10_THROW_ERROR(ValueError, "occl: endCoalescing without startCoalescing");
  Works works = std::move(open->second.back().works);
  open->second.pop_back();
  if (open->second.empty())
    coalesced_.erase(open);
  return works;
}

c10::intrusive_ptr<Work> Backend::coalesce(const std::function<void()> &calls) {
  openBatch(std::numeric_limits<size_t>::max());
  try {
    calls();
  } catch (...) {
    closeBatch();
    throw;
  }
  return endCoalescing();
}

c10::intrusive_ptr<Work> Backend::endCoalescing() {
  const Works parts = closeBatch();
  if (!parts.empty() && dynamic_cast<DeviceWork *>(parts[0].get()))
    return started(devices_->combine(parts));
  std::vector<OcclWork *> works;
  for (const auto &part : parts)
    if (auto *onHost = dynamic_cast<OcclWork *>(part.get()))
      works.push_back(onHost);
    else
      return started(devices_->combine(parts)); // which says what is wrong
  Tensors outputs;
  for (const auto &part : parts)
    for (const auto &output : part->result())
      outputs.push_back(output);
  auto work = newWork(c10d::OpType::COALESCED, "coalesced", {}, outputs, parts.size() + 1);
  for (OcclWork *part : works)
    part->whenComplete([work](std::exception_ptr error) { work->partEnded(error); });
  work->partEnded();
  return started(work);
}

// --- Messages.

c10::intrusive_ptr<Work> Backend::send(Tensors &tensors, int peer, int tag) {
  usable("send");
  at::Tensor &tensor = only(tensors, "send");
  checkTensor(tensor, "send");
  checkRoot(peer, "send");
  if (tensor.is_cuda())
    return started(devices_->message(
        {c10d::OpType::SEND, "send", true, timeout(c10d::kUnsetTimeout)}, {peer, tensor}, true));
  return started(messages_->send(tensor, peer, tag, std::chrono::milliseconds(timeout_)));
}

c10::intrusive_ptr<Work> Backend::recv(Tensors &tensors, int peer, int tag) {
  usable("recv");
  at::Tensor &tensor = only(tensors, "recv");
  checkTensor(tensor, "recv");
  checkRoot(peer, "recv");
  if (tensor.is_cuda())
    return started(devices_->message(
        {c10d::OpType::RECV, "recv", true, timeout(c10d::kUnsetTimeout)}, {peer, tensor}, false));
  return started(messages_->receive(tensor, peer, tag, std::chrono::milliseconds(timeout_)));
}

c10::intrusive_ptr<Work> Backend::recvAnysource(Tensors &tensors, int tag) {
  usable("recv");
  at::Tensor &tensor = only(tensors, "recv");
  checkTensor(tensor, "recv");
  if (tensor.is_cuda())
    C10_THROW_ERROR(ValueError, "occl: recv: a CUDA tensor is received from a rank that is named, "
                                "not from any: give src");
  return started(
      messages_->receive(tensor, Messages::kAnySource, tag, std::chrono::milliseconds(timeout_)));
}

} // namespace occl_torch
