#include "meeting.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <random>
#include <sstream>

#include "library.h"

namespace occl_torch {

namespace {

using std::chrono::milliseconds;

// What a rank writes: where it is; then rank 0: how all meet. The first word says which way.
std::string placeKey(int rank) { return "occl/place/" + std::to_string(rank); }
constexpr const char *kDecision = "occl/decision";
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

// One rank that comes to the store.
class Attendee {
public:
  Attendee(c10d::Store &store, int rank, int size, milliseconds timeout)
      : store_(store), rank_(rank), size_(size), timeout_(timeout) {}

  Meeting meet() {
    say(placeKey(rank_), hostId());
    if (rank_ == 0)
      return decide();
    // Rank 0 waits as long as this rank, and then says who is missing.
    if (!await({kDecision}, timeout_ + std::chrono::seconds(2)))
      fail(late());
    return follow(read(kDecision));
  }

private:
  Meeting decide() {
    std::vector<std::string> places;
    for (int peer = 1; peer < size_; ++peer)
      places.push_back(placeKey(peer));
    if (!await(places, timeout_))
      failAll(late());
    const std::string own = hostId();
    for (const std::string &place : places)
      if (read(place) != own)
        return decideAcross();
    return announce(std::string(kLocal) + " " + randomName());
  }

  // A port for each communicator: a rank that has joined one may be at the next before others are.
  Meeting decideAcross() {
    std::vector<std::shared_ptr<void>> held;
    std::string names;
    const std::string towards = hostOf(store_);
    for (int i = 0; i < 2; ++i) {
      occlRendezvous_t opened = nullptr;
      const char *name = nullptr;
      if (occl().occlRendezvousOpen(towards.empty() ? nullptr : towards.c_str(), &opened, &name) !=
          occlSuccess)
        failAll(
            std::string("ranks are on several machines, and rank 0 has nowhere to meet them: ") +
            occl().occlGetLastError());
      held.emplace_back(opened, [](void *port) {
        occl().occlRendezvousClose(static_cast<occlRendezvous_t>(port));
      });
      names += std::string(" ") + name;
    }
    Meeting meeting = announce(kAcross + names);
    meeting.held = std::move(held);
    return meeting;
  }

  Meeting announce(const std::string &decision) {
    say(kDecision, decision);
    return follow(decision);
  }

  Meeting follow(const std::string &decision) const {
    std::istringstream words(decision);
    std::string way;
    Meeting meeting;
    words >> way;
    if (way == kFailed)
      fail(decision.substr(way.size() + 1));
    meeting.isAcross = way == kAcross;
    words >> meeting.collectives >> meeting.messages;
    if (!meeting.isAcross) {
      meeting.messages = meeting.collectives + "m";
      meeting.devices = meeting.collectives + "d";
    }
    return meeting;
  }

  // False: not within the time.
  bool await(const std::vector<std::string> &keys, milliseconds timeout) const {
    try {
      store_.wait(keys, timeout);
      return true;
    } catch (const std::exception &) {
      if (store_.check(keys)) // which throws if it is the store that is gone
        return true;
      return false;
    }
  }

  std::string late() const {
    std::string missing;
    for (int peer = 0; peer < size_; ++peer)
      if (!store_.check({placeKey(peer)}))
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

  std::string read(const std::string &key) const {
    const std::vector<uint8_t> bytes = store_.get(key);
    return {bytes.begin(), bytes.end()};
  }

  // Of rank 0: nobody else has to wait to learn of it.
  [[noreturn]] void failAll(const std::string &why) const {
    say(kDecision, std::string(kFailed) + " " + why);
    fail(why);
  }

  [[noreturn]] void fail(const std::string &why) const {
    C10_THROW_ERROR(DistBackendError, "occl: making a group of " + std::to_string(size_) +
                                          " ranks failed on rank " + std::to_string(rank_) + ": " +
                                          why);
  }

  c10d::Store &store_;
  const int rank_, size_;
  const milliseconds timeout_;
};

} // namespace

Meeting meet(c10d::Store &store, int rank, int size, milliseconds timeout) {
  return Attendee(store, rank, size, timeout).meet();
}

} // namespace occl_torch
