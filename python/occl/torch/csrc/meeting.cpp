#include "meeting.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <random>
#include <sstream>
#include <thread>

#include "communicator.h"
#include "signals.h"

namespace occl_torch {

namespace {

using std::chrono::milliseconds;

// Ranks that fail, retry, or make a group again find the keys of before. So rank 0's call and each
// rank's answer to it have a name of their own, for one attempt: what is left of another one is
// never taken for a part of this, whoever made it and however it ended.
std::string hereKey(int rank) { return "occl/here/" + std::to_string(rank); } // for texts alone
constexpr const char *kCall = "occl/call"; // the name of rank 0's attempt, if it is at one
constexpr const char *kNoCall = "-";
// The name of a rank's attempt, and its host.
std::string placeKey(const std::string &call, int rank) {
  return "occl/place/" + call + "/" + std::to_string(rank);
}
// How all meet, for the attempt of that name. The first word says which way.
std::string answerKey(const std::string &attempt) { return "occl/answer/" + attempt; }
constexpr const char *kLocal = "local", *kAcross = "across", *kFailed = "failed";

std::string hostId() {
  std::string text(4096, '\0');
  size_t length = 0;
  occl().occlHostId(text.data(), text.size(), &length);
  text.resize(std::min(length, text.size() - 1));
  return text;
}

std::string randomName() {
  std::random_device device;
  std::ostringstream name;
  for (int i = 0; i < 4; ++i)
    name << std::hex << device();
  return name.str();
}

// By which the ranks reach the store, "" if that is no host.
std::string hostOf(c10d::Store &store) {
  c10d::Store *inner = &store;
  while (auto *prefix = dynamic_cast<c10d::PrefixStore *>(inner))
    inner = prefix->getUnderlyingStore().get();
  auto *tcp = dynamic_cast<c10d::TCPStore *>(inner);
  return tcp ? tcp->getHost() : "";
}

// Between two looks at the store: by how long it has taken so far, and no longer than signals wait.
class Pause {
public:
  void operator()() const {
    const auto waited = Clock::now() - begin_;
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>(waited / 16, milliseconds(1), kSignalSlice));
    checkSignals();
  }

private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_ = Clock::now();
};

// One rank that comes to the store.
class Attendee {
public:
  Attendee(c10d::Store &store, int rank, int size, milliseconds timeout)
      : store_(store), rank_(rank), size_(size), timeout_(boundedOf(timeout)) {}

  Meeting meet() {
    if (size_ == 1)
      return follow(localWay());
    say(hereKey(rank_), "1");
    Meeting meeting = rank_ == 0 ? preside() : attend();
    erase(hereKey(rank_));
    return meeting;
  }

  Meeting meetAgain(bool isAcross, const std::function<void(std::string &)> &tell) {
    std::vector<std::shared_ptr<void>> held;
    std::string way;
    if (rank_ == 0)
      way = isAcross ? acrossWay(held) : localWay();
    tell(way);
    Meeting meeting = follow(way);
    meeting.held = std::move(held);
    return meeting;
  }

private:
  using Clock = std::chrono::steady_clock;
  struct Guest {
    std::string attempt, host;
  };

  Meeting preside() {
    call_ = randomName();
    try {
      say(kCall, call_);
      if (!allHaveCome())
        fail(late());
      std::vector<Guest> guests;
      for (int peer = 1; peer < size_; ++peer)
        guests.push_back(guest(peer));
      std::vector<std::shared_ptr<void>> held;
      const std::string way = isOneHost(guests) ? localWay() : acrossWay(held);
      endCall();
      for (const Guest &guest : guests)
        say(answerKey(guest.attempt), way);
      Meeting meeting = follow(way);
      meeting.held = std::move(held);
      return meeting;
    } catch (...) {
      dismiss();
      throw;
    }
  }

  bool allHaveCome() const {
    std::vector<std::string> places;
    for (int peer = 1; peer < size_; ++peer)
      places.push_back(placeKey(call_, peer));
    const auto until = Clock::now() + timeout_;
    for (const Pause pause; !store_.check(places); pause())
      if (Clock::now() >= until)
        return false;
    return true;
  }

  // Before anybody has an answer: who makes a group again waits for the next call.
  void endCall() const {
    say(kCall, kNoCall);
    for (int peer = 1; peer < size_; ++peer)
      erase(placeKey(call_, peer));
  }

  // Whatever has ended the attempt of rank 0: nobody else has to wait to learn of it.
  void dismiss() const noexcept {
    try {
      say(kCall, kNoCall);
      for (int peer = 1; peer < size_; ++peer) {
        if (!store_.check({placeKey(call_, peer)}))
          continue;
        say(answerKey(guest(peer).attempt), std::string(kFailed) + " " + why_);
        erase(placeKey(call_, peer));
      }
    } catch (...) { // NOLINT: the store is gone, which they see themselves
    }
  }

  // Rank 0 waits as long as this rank, and then says who is missing.
  Meeting attend() {
    const std::string attempt = randomName();
    try {
      awaitAnswer(attempt);
    } catch (...) {
      leaveCall();
      throw;
    }
    const std::string way = read(answerKey(attempt));
    erase(answerKey(attempt));
    return follow(way);
  }

  void awaitAnswer(const std::string &attempt) {
    const auto until = Clock::now() + timeout_ + std::chrono::seconds(2);
    for (const Pause pause; !store_.check({answerKey(attempt)}); pause()) {
      if (Clock::now() >= until)
        fail(late());
      comeTo(attempt);
    }
  }

  // Rank 0 is not to count with a rank that has given up, unless it does by now.
  void leaveCall() const noexcept {
    try {
      if (!call_.empty() && call_ != kNoCall)
        erase(placeKey(call_, rank_));
    } catch (...) { // NOLINT: the store is gone
    }
  }

  // Answers the call, if there is one that this attempt has not answered yet.
  void comeTo(const std::string &attempt) {
    if (!store_.check({kCall}))
      return;
    const std::string call = read(kCall);
    if (call != kNoCall && call != call_)
      say(placeKey(call, rank_), attempt + " " + hostId());
    call_ = call;
  }

  Guest guest(int peer) const {
    const std::string place = read(placeKey(call_, peer));
    const size_t space = place.find(' ');
    return {place.substr(0, space), place.substr(space + 1)};
  }

  static bool isOneHost(const std::vector<Guest> &guests) {
    const std::string own = hostId();
    return std::all_of(guests.begin(), guests.end(),
                       [&](const Guest &guest) { return guest.host == own; });
  }

  static std::string localWay() { return std::string(kLocal) + " " + randomName(); }

  // A port for each communicator: a rank that has joined one may be at the next before others are.
  std::string acrossWay(std::vector<std::shared_ptr<void>> &held) {
    std::string way = kAcross;
    const std::string towards = hostOf(store_);
    for (int i = 0; i < 2; ++i) {
      occlRendezvous_t opened = nullptr;
      const char *name = nullptr;
      if (occl().occlRendezvousOpen(towards.empty() ? nullptr : towards.c_str(), &opened, &name) !=
          occlSuccess)
        fail(std::string("ranks are on several machines, and rank 0 has nowhere to meet them: ") +
             occl().occlGetLastError());
      held.emplace_back(opened, [](void *port) {
        occl().occlRendezvousClose(static_cast<occlRendezvous_t>(port));
      });
      way += std::string(" ") + name;
    }
    return way;
  }

  Meeting follow(const std::string &answer) {
    std::istringstream words(answer);
    std::string way;
    Meeting meeting;
    words >> way;
    if (way == kFailed)
      fail(answer.substr(way.size() + 1));
    meeting.isAcross = way == kAcross;
    words >> meeting.collectives >> meeting.messages;
    if (!meeting.isAcross) {
      meeting.messages = meeting.collectives + "m";
      meeting.devices = meeting.collectives + "d";
    }
    return meeting;
  }

  std::string late() const {
    std::string missing;
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_ && !store_.check({rank_ == 0 ? placeKey(call_, peer) : hereKey(peer)}))
        missing += (missing.empty() ? "" : ", ") + std::to_string(peer);
    const bool isOne = missing.find(',') == std::string::npos;
    return missing.empty()
               ? "rank 0 has not said through the store where the ranks meet"
               : (isOne ? "rank " : "ranks ") + missing + (isOne ? " has" : " have") +
                     " not come to the store within " + std::to_string(timeout_.count()) + " ms";
  }

  void say(const std::string &key, const std::string &value) const {
    store_.set(key, std::vector<uint8_t>(value.begin(), value.end()));
  }

  // Of a key that is there: where it is not, this waits.
  std::string read(const std::string &key) const {
    const std::vector<uint8_t> bytes = store_.get(key);
    return {bytes.begin(), bytes.end()};
  }

  // For tidiness alone: there are stores that cannot.
  void erase(const std::string &key) const {
    try {
      store_.deleteKey(key);
    } catch (const std::exception &) { // NOLINT
    }
  }

  [[noreturn]] void fail(const std::string &why) {
    why_ = why;
    C10_THROW_ERROR(DistBackendError, "occl: making a group of " + std::to_string(size_) +
                                          " ranks failed on rank " + std::to_string(rank_) + ": " +
                                          why);
  }

  c10d::Store &store_;
  const int rank_, size_;
  const milliseconds timeout_;
  std::string call_; // of rank 0; elsewhere the last one that was seen
  std::string why_ = "rank 0 has been interrupted while it waited for the others";
};

} // namespace

Meeting meet(c10d::Store &store, int rank, int size, milliseconds timeout) {
  return Attendee(store, rank, size, timeout).meet();
}

Meeting meetAgain(c10d::Store &store, int rank, int size, bool isAcross,
                  const std::function<void(std::string &)> &tell) {
  return Attendee(store, rank, size, milliseconds(0)).meetAgain(isAcross, tell);
}

} // namespace occl_torch
