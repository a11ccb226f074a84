#include "runtime/cuda/watch/held_streams.h"

#include "runtime/cuda/watch/waiting.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

namespace occl::cuda {

void HeldStreams::attach(StrictDaemon &daemon) {
  std::lock_guard exclusive(calling);
  std::lock_guard lock(mutex);
  daemons.push_back(&daemon);
  numDaemons.store(static_cast<uint32_t>(daemons.size()), std::memory_order_release);
  daemon.letAllLeave(!isFull);
}

void HeldStreams::detach(StrictDaemon &daemon) {
  std::lock_guard exclusive(calling);
  std::lock_guard lock(mutex);
  std::erase(daemons, &daemon);
  numDaemons.store(static_cast<uint32_t>(daemons.size()), std::memory_order_release);
}

void HeldStreams::enter(uint64_t stream) {
  enterWith(stream, [](Held &held) { ++held.number; });
}

void HeldStreams::enterUntil(uint64_t stream, std::function<bool()> isOver) {
  auto last = std::make_shared<const std::function<bool()>>(std::move(isOver));
  enterWith(stream, [&](Held &held) { last.swap(held.isOver); });
}

template <class Change> void HeldStreams::enterWith(uint64_t stream, const Change &change) {
  {
    std::lock_guard lock(mutex);
    change(streams[stream]);
    if (!tell())
      return;
  }
  ensureLookouts();
}

/// Who has made them as many as there are connections, or finds as many, goes on when all daemons
/// have seen to it, whoever has them do so.
void HeldStreams::ensureLookouts() {
  sweep();
  std::lock_guard exclusive(calling);
  {
    std::lock_guard lock(mutex);
    if (!isFull)
      return;
  }
  for (StrictDaemon *daemon : daemons)
    daemon->ensureLookout();
}

void HeldStreams::leave(uint64_t stream) {
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  if (found == streams.end() || found->second.number == 0)
    return;
  if (--found->second.number == 0 && !found->second.isOver)
    streams.erase(found);
  tell();
}

void HeldStreams::sweep() {
  std::vector<std::pair<uint64_t, IsOver>> asked;
  {
    std::lock_guard lock(mutex);
    for (const auto &[stream, held] : streams)
      if (held.isOver)
        asked.emplace_back(stream, held.isOver);
  }
  std::erase_if(asked, [](const auto &entry) { return !(*entry.second)(); });
  std::lock_guard lock(mutex);
  for (const auto &[stream, isOver] : asked) {
    auto found = streams.find(stream);
    if (found == streams.end() || found->second.isOver != isOver)
      continue; // something came behind it
    found->second.isOver.reset();
    if (found->second.number == 0)
      streams.erase(found);
  }
  tell();
}

/// The words are changed with the number, under one lock. Whether there are as many as connections.
bool HeldStreams::tell() {
  const bool wasFull = std::exchange(isFull, streams.size() >= connections);
  if (isFull != wasFull)
    for (StrictDaemon *daemon : daemons)
      daemon->letAllLeave(!isFull);
  return isFull;
}

uint32_t HeldStreams::count() const {
  std::lock_guard lock(mutex);
  return static_cast<uint32_t>(streams.size());
}

HeldStreams &heldStreamsOn(int device) {
  struct Registry {
    Mutex mutex;
    std::map<int, std::unique_ptr<HeldStreams>> devices;
  };
  // Never destroyed: threads may still be at work when the process ends.
  static Registry &registry = *new Registry;
  std::lock_guard lock(registry.mutex);
  std::unique_ptr<HeldStreams> &place = registry.devices[device];
  if (!place)
    place =
        std::make_unique<HeldStreams>(connectionsFrom(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")));
  return *place;
}

} // namespace occl::cuda
