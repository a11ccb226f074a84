#include "messages.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <new>

namespace occl_torch {

namespace {
constexpr uint32_t kMagic = 0x4f43434c;
constexpr uint32_t kMessage = 1, kFarewell = 2;
// In flight at a time: together fewer than the communicator has requests, so that messages that
// nobody receives do not keep this rank from receiving.
constexpr size_t kMaxSends = 2048;
constexpr unsigned kMaxArriving = 64;

std::exception_ptr errorOf(const std::string &text) {
  return std::make_exception_ptr(c10::DistBackendError(
      c10::SourceLocation{__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text));
}

std::string bytesAndType(uint64_t bytes, int32_t type) {
  return std::to_string(bytes) + " bytes of " + c10::toString(static_cast<at::ScalarType>(type));
}
} // namespace

struct Messages::Send {
  std::shared_ptr<Messages> owner;
  WorkPtr work; // none for a farewell
  at::Tensor tensor;
  Header header;
  int peer;
  Clock::time_point deadline;
  std::chrono::milliseconds timeout;
};

struct Messages::Receive {
  WorkPtr work;
  at::Tensor tensor;
  int peer, tag;
  Clock::time_point deadline;
  std::chrono::milliseconds timeout;
};

/// A message whose header is here.
struct Messages::Arrival {
  std::shared_ptr<Messages> owner;
  Header header;
  int peer;
  uint64_t number;
  std::shared_ptr<Receive> receive; // that it is for, once there is one
  bool straight = false;            // into its tensor
  bool here = false;
  std::vector<char> bytes;
};

struct Messages::HeaderCallback {
  std::shared_ptr<Messages> owner;
  int peer;
};

Messages::Messages(std::shared_ptr<Communicator> comm, int rank, int size)
    : comm_(std::move(comm)), strand_(std::make_shared<Strand>()), rank_(rank), size_(size),
      peers_(size) {}

WorkPtr Messages::newWork(c10d::OpType type, const char *name, at::Tensor tensor, bool output) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return c10::make_intrusive<OcclWork>(comm_, strand_, rank_, type, name, tensors,
                                       output ? tensors : std::vector<at::Tensor>{});
}

WorkPtr Messages::send(at::Tensor tensor, int peer, int tag, std::chrono::milliseconds timeout) {
  auto send = std::make_shared<Send>();
  send->owner = shared_from_this();
  send->work = newWork(c10d::OpType::SEND, "send", tensor, false);
  send->header = {kMagic, kMessage, tag, static_cast<int32_t>(tensor.scalar_type()),
                  static_cast<uint64_t>(tensor.nbytes())};
  send->tensor = std::move(tensor);
  send->peer = peer;
  send->timeout = boundedOf(timeout);
  send->deadline = Clock::now() + send->timeout;
  auto work = send->work;
  strand_->add([self = shared_from_this(), send] {
    self->used_ = true;
    if (self->sending_.size() >= kMaxSends || !self->waiting_.empty()) {
      self->waiting_.push_back(send);
      return true;
    }
    return self->trySend(send);
  });
  return work;
}

// False if there is no room.
bool Messages::trySend(std::shared_ptr<Send> send) {
  Communicator::Use use(*comm_);
  if (!use) {
    if (send->work)
      send->work->partEnded(errorOf("occl: send: " + comm_->unusable()));
    return true;
  }
  auto *user = new std::shared_ptr<Send>(send);
  const auto comm = use.handle();
  occl().occlGroupStart();
  occl().occlSend(&send->header, sizeof(Header), occlUint8, send->peer, comm, nullptr);
  if (send->header.bytes != 0)
    occl().occlSend(send->tensor.const_data_ptr(), send->header.bytes, occlUint8, send->peer, comm,
                    nullptr);
  occlRequest_t request = 0;
  sending_.push_back(send);
  const occlResult_t result = occl().occlGroupEndAsync(
      comm, 1,
      [](occlRequest_t, occlResult_t ended, void *data) {
        std::unique_ptr<std::shared_ptr<Send>> held(static_cast<std::shared_ptr<Send> *>(data));
        (*held)->owner->sendEnded(*held, ended);
        Helper::get().release(std::move(*held));
      },
      user, &request);
  if (result == occlSuccess) {
    if (send->work)
      send->work->setRequest(request);
    watch();
    return true;
  }
  sending_.remove(send);
  delete user;
  if (result == occlAgain)
    return false;
  if (send->work)
    send->work->partEnded(comm_->failure("send to rank " + std::to_string(send->peer), result));
  return true;
}

void Messages::sendEnded(std::shared_ptr<Send> send, occlResult_t result) {
  if (send->work)
    send->work->partEnded(
        result == occlSuccess
            ? nullptr
            : comm_->failure("send to rank " + std::to_string(send->peer), result));
  strand_->add([self = shared_from_this(), send] {
    self->sending_.remove(send);
    // All there is room for: after a failure none of them stays in flight.
    while (!self->waiting_.empty() && self->sending_.size() < kMaxSends) {
      auto next = self->waiting_.front();
      if (!self->trySend(next))
        return false;
      self->waiting_.pop_front();
    }
    return true;
  });
}

WorkPtr Messages::receive(at::Tensor tensor, int peer, int tag, std::chrono::milliseconds timeout) {
  auto receive = std::make_shared<Receive>();
  receive->work = newWork(peer == kAnySource ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV,
                          "recv", tensor, true);
  receive->tensor = std::move(tensor);
  receive->peer = peer;
  receive->tag = tag;
  receive->timeout = boundedOf(timeout);
  receive->deadline = Clock::now() + receive->timeout;
  if (peer != kAnySource)
    receive->work->setSource(peer);
  strand_->add([self = shared_from_this(), receive] {
    self->post(receive);
    return true;
  });
  return receive->work;
}

// Takes a message that is here or on its way, the one that came first; else waits for one.
void Messages::post(std::shared_ptr<Receive> receive) {
  used_ = true;
  if (const std::string why = comm_->unusable(); !why.empty())
    return receive->work->partEnded(errorOf("occl: recv: " + why));
  Peer *from = nullptr;
  std::list<std::shared_ptr<Arrival>>::iterator first;
  for (int peer = 0; peer < size_; ++peer) {
    if (receive->peer != kAnySource && receive->peer != peer)
      continue;
    auto &unclaimed = peers_[peer].unclaimed;
    for (auto it = unclaimed.begin(); it != unclaimed.end(); ++it)
      if ((*it)->header.tag == receive->tag) {
        if (!from || (*it)->number < (*first)->number) {
          from = &peers_[peer];
          first = it;
        }
        break;
      }
  }
  if (from) {
    auto arrival = *first;
    from->unclaimed.erase(first);
    arrival->receive = receive;
    receive->work->setSource(arrival->peer);
    if (arrival->here)
      deliver(arrival);
    return;
  }
  if (receive->peer != kAnySource && peers_[receive->peer].left)
    return receive->work->partEnded(errorOf("occl: recv: rank " + std::to_string(receive->peer) +
                                            " has destroyed its process group"));
  posted_.push_back(receive);
  watch();
  arm();
}

// Receives the next header of those whose messages are waited for.
void Messages::arm() {
  for (int peer = 0; peer < size_; ++peer) {
    Peer &from = peers_[peer];
    if (from.armed || from.left || from.arriving >= kMaxArriving)
      continue;
    bool wanted = false;
    for (const auto &receive : posted_)
      wanted |= receive->peer == peer || (receive->peer == kAnySource && peer != rank_);
    if (!wanted)
      continue;
    from.armed = true;
    if (!tryArm(peer))
      strand_->add([self = shared_from_this(), peer] { return self->tryArm(peer); });
  }
}

bool Messages::tryArm(int peer) {
  Communicator::Use use(*comm_);
  if (!use) {
    peers_[peer].armed = false;
    failPosted(peer, comm_->unusable());
    return true;
  }
  auto *user = new HeaderCallback{shared_from_this(), peer};
  occl().occlGroupStart();
  occl().occlRecv(&peers_[peer].header, sizeof(Header), occlUint8, peer, use.handle(), nullptr);
  occlRequest_t request = 0;
  const occlResult_t result = occl().occlGroupEndAsync(
      use.handle(), 1,
      [](occlRequest_t, occlResult_t ended, void *data) {
        std::unique_ptr<HeaderCallback> held(static_cast<HeaderCallback *>(data));
        auto owner = std::move(held->owner);
        owner->strand_->add([owner, peer = held->peer, ended] {
          owner->headerCame(peer, ended);
          return true;
        });
      },
      user, &request);
  if (result == occlSuccess) {
    for (const auto &receive : posted_)
      if (receive->peer == peer || receive->peer == kAnySource)
        receive->work->setRequest(request);
    return true;
  }
  delete user;
  if (result == occlAgain)
    return false;
  peers_[peer].armed = false;
  failPosted(peer, comm_->describe("recv from rank " + std::to_string(peer), result));
  return true;
}

void Messages::headerCame(int peer, occlResult_t result) {
  Peer &from = peers_[peer];
  from.armed = false;
  if (result != occlSuccess)
    return failPosted(peer, comm_->describe("recv from rank " + std::to_string(peer), result));
  if (from.header.kind == kFarewell) {
    from.left = true;
    return failPosted(peer, "occl: recv: rank " + std::to_string(peer) +
                                " has destroyed its process group");
  }
  std::shared_ptr<Arrival> arrival;
  try {
    arrival = match(peer);
  } catch (const std::bad_alloc &) { // then nobody can have what comes from this peer
    const std::string why = "rank " + std::to_string(rank_) + " has no memory for a message of " +
                            std::to_string(from.header.bytes) + " bytes of rank " +
                            std::to_string(peer) + ", which no receive of that size waits for";
    comm_->abort(why);
    return failPosted(peer, "occl: recv: " + why);
  }
  receiving_.push_back(arrival);
  if (!tryArrival(arrival))
    strand_->add([self = shared_from_this(), arrival] { return self->tryArrival(arrival); });
  arm();
}

// Who gets the message whose header has come.
std::shared_ptr<Messages::Arrival> Messages::match(int peer) {
  auto arrival = std::make_shared<Arrival>();
  arrival->owner = shared_from_this();
  arrival->header = peers_[peer].header;
  arrival->peer = peer;
  arrival->number = arrivals_++;
  const Header &header = arrival->header;
  const auto found = std::find_if(posted_.begin(), posted_.end(), [&](const auto &receive) {
    return (receive->peer == peer || receive->peer == kAnySource) && receive->tag == header.tag;
  });
  if (found != posted_.end()) {
    const Receive &receive = **found;
    arrival->straight = receive.tensor.nbytes() == header.bytes &&
                        static_cast<int32_t>(receive.tensor.scalar_type()) == header.type;
  }
  if (!arrival->straight)
    arrival->bytes.resize(header.bytes); // which may fail: nothing is taken before
  if (found == posted_.end()) {
    peers_[peer].unclaimed.push_back(arrival);
    return arrival;
  }
  arrival->receive = *found;
  posted_.erase(found);
  arrival->receive->work->setSource(peer);
  return arrival;
}

bool Messages::tryArrival(std::shared_ptr<Arrival> arrival) {
  if (arrival->header.bytes == 0) {
    arrived(arrival, occlSuccess);
    return true;
  }
  Communicator::Use use(*comm_);
  if (!use) {
    arrived(arrival, occlAborted);
    return true;
  }
  auto *user = new std::shared_ptr<Arrival>(arrival);
  void *to = arrival->straight ? arrival->receive->tensor.data_ptr() : arrival->bytes.data();
  occl().occlGroupStart();
  occl().occlRecv(to, arrival->header.bytes, occlUint8, arrival->peer, use.handle(), nullptr);
  occlRequest_t request = 0;
  ++peers_[arrival->peer].arriving;
  const occlResult_t result = occl().occlGroupEndAsync(
      use.handle(), 1,
      [](occlRequest_t, occlResult_t ended, void *data) {
        std::unique_ptr<std::shared_ptr<Arrival>> held(
            static_cast<std::shared_ptr<Arrival> *>(data));
        auto message = *held;
        if (message->straight && ended == occlSuccess)
          message->receive->work->partEnded(); // the waiting rank goes on first
        message->owner->strand_->add([message, ended] {
          auto &from = message->owner->peers_[message->peer];
          --from.arriving;
          message->owner->arrived(message, ended);
          message->owner->arm();
          return true;
        });
        Helper::get().release(std::move(message));
      },
      user, &request);
  if (result == occlSuccess) {
    if (arrival->receive)
      arrival->receive->work->setRequest(request);
    return true;
  }
  --peers_[arrival->peer].arriving;
  delete user;
  if (result == occlAgain)
    return false;
  arrived(arrival, result);
  return true;
}

void Messages::arrived(std::shared_ptr<Arrival> arrival, occlResult_t result) {
  receiving_.remove(arrival);
  arrival->here = true;
  if (result != occlSuccess) {
    if (arrival->receive)
      arrival->receive->work->partEnded(
          comm_->failure("recv from rank " + std::to_string(arrival->peer), result));
    peers_[arrival->peer].unclaimed.remove(arrival);
    return;
  }
  if (!arrival->receive)
    return;
  if (arrival->straight && arrival->header.bytes != 0)
    return; // has ended with its transfer
  deliver(arrival);
}

// The message is here, and who gets it.
void Messages::deliver(const std::shared_ptr<Arrival> &arrival) {
  const Header &header = arrival->header;
  Receive &receive = *arrival->receive;
  const auto type = static_cast<int32_t>(receive.tensor.scalar_type());
  if (receive.tensor.nbytes() != header.bytes || type != header.type)
    return receive.work->partEnded(
        errorOf("occl: recv on rank " + std::to_string(rank_) + ": the message of rank " +
                std::to_string(arrival->peer) + " with tag " + std::to_string(header.tag) + " is " +
                bytesAndType(header.bytes, header.type) + ", the tensor " +
                bytesAndType(receive.tensor.nbytes(), type) + ": both sides must agree"));
  if (header.bytes != 0 && !arrival->straight)
    std::memcpy(receive.tensor.data_ptr(), arrival->bytes.data(), header.bytes);
  receive.work->partEnded();
  arrival->bytes = {};
}

// Receives that only this peer could have served end; those from any source if nobody is left.
void Messages::failPosted(int peer, const std::string &why) {
  bool anyLeft = false;
  for (int other = 0; other < size_; ++other)
    anyLeft |= other != rank_ && !peers_[other].left;
  std::vector<std::shared_ptr<Receive>> failed;
  for (auto it = posted_.begin(); it != posted_.end();) {
    const bool hit =
        (*it)->peer == peer || ((*it)->peer == kAnySource && (!anyLeft || !peers_[peer].left));
    if (hit)
      failed.push_back(*it);
    it = hit ? posted_.erase(it) : std::next(it);
  }
  for (auto &receive : failed)
    receive->work->partEnded(errorOf(why));
}

void Messages::watch() {
  if (!watched_)
    Helper::get().watch(weak_from_this());
  watched_ = true;
}

unsigned Messages::tick() {
  auto again = std::make_shared<std::atomic<bool>>(true);
  strand_->add([self = shared_from_this(), again] {
    const std::string late = self->overdue();
    if (!late.empty())
      self->comm_->abort(late);
    self->watched_ = !self->posted_.empty() || !self->sending_.empty() || !self->receiving_.empty();
    *again = self->watched_;
    return true;
  });
  return *again ? 20 : 0;
}

// Fails receives whose message has not begun to come. What is being transferred cannot be called
// back: then the text of the error that ends all messages of the group.
std::string Messages::overdue() {
  const auto now = Clock::now();
  for (auto it = posted_.begin(); it != posted_.end();) {
    auto receive = *it;
    if (receive->deadline > now) {
      ++it;
      continue;
    }
    it = posted_.erase(it);
    const std::string from =
        receive->peer == kAnySource ? "no rank" : "rank " + std::to_string(receive->peer);
    std::string text = "occl: recv on rank " + std::to_string(rank_) + ": timeout: " + from +
                       " has" + (receive->peer == kAnySource ? "" : " not") +
                       " sent a message with tag " + std::to_string(receive->tag) + " within " +
                       std::to_string(receive->timeout.count()) + " ms";
    for (int peer = 0; peer < size_; ++peer)
      for (const auto &other : peers_[peer].unclaimed)
        text += "; there is one of rank " + std::to_string(peer) + " with tag " +
                std::to_string(other->header.tag);
    receive->work->partEnded(errorOf(text));
  }
  for (const auto &send : sending_)
    if (send->work && send->deadline <= now)
      return "timeout: rank " + std::to_string(send->peer) + " has not received the message of " +
             std::to_string(send->header.bytes) + " bytes with tag " +
             std::to_string(send->header.tag) + " of rank " + std::to_string(rank_) + " within " +
             std::to_string(send->timeout.count()) + " ms";
  for (const auto &arrival : receiving_)
    if (arrival->receive && arrival->receive->deadline <= now)
      return "timeout: rank " + std::to_string(arrival->peer) +
             " has not finished sending a message of " + std::to_string(arrival->header.bytes) +
             " bytes to rank " + std::to_string(rank_) + " within " +
             std::to_string(arrival->receive->timeout.count()) + " ms";
  return "";
}

void Messages::leave() {
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool idle = false;
  };
  auto state = std::make_shared<State>();
  strand_->add([self = shared_from_this()] {
    for (auto &receive : std::exchange(self->posted_, {}))
      receive->work->partEnded(errorOf("occl: recv: the process group was destroyed"));
    for (int peer = 0; self->used_ && peer < self->size_; ++peer) {
      if (peer == self->rank_ || self->peers_[peer].left)
        continue;
      auto farewell = std::make_shared<Send>();
      farewell->owner = self;
      farewell->header = {kMagic, kFarewell, 0, 0, 0};
      farewell->peer = peer;
      farewell->deadline = Clock::time_point::max();
      self->trySend(farewell);
    }
    return true;
  });
  const auto until = Clock::now() + std::chrono::seconds(2);
  bool idle = false;
  while (!idle && Clock::now() < until) {
    strand_->add([self = shared_from_this(), state] {
      std::lock_guard<std::mutex> lock(state->mutex);
      state->idle = self->sending_.empty() && self->waiting_.empty();
      for (const Peer &peer : self->peers_)
        state->idle = state->idle && !peer.armed;
      state->changed.notify_all();
      return true;
    });
    std::unique_lock<std::mutex> lock(state->mutex);
    state->changed.wait_for(lock, std::chrono::milliseconds(1), [&] { return state->idle; });
    idle = state->idle;
  }
  if (idle)
    comm_->close();
  else
    comm_->leave();
}

} // namespace occl_torch
