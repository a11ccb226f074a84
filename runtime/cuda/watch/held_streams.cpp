// Streams that wait, by number, and the daemons that have somebody stay as long as there are any.
#include "runtime/cuda/watch/held_streams.h"

#include <memory>
#include <mutex>

namespace occl::cuda {

namespace {

/// Of a stream, of enterUntil(): with more it is time to ask them.
constexpr size_t kMostKept = 16;

} // namespace

void HeldStreams::attach(StrictDaemon &daemon) {
  std::lock_guard exclusive(calling);
  std::lock_guard lock(mutex);
  daemons.push_back(&daemon);
  numDaemons.store(static_cast<uint32_t>(daemons.size()), std::memory_order_release);
  daemon.letAllLeave(!isAnyHeld);
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
  auto added = std::make_shared<const std::function<bool()>>(std::move(isOver));
  bool areMany = false;
  enterWith(stream, [&](Held &held) {
    held.isOver.push_back(std::move(added));
    areMany = held.isOver.size() > kMostKept;
  });
  if (areMany)
    sweep();
}

template <class Change> void HeldStreams::enterWith(uint64_t stream, const Change &change) {
  {
    std::lock_guard lock(mutex);
    change(streams[stream]);
    tell();
    if (isSeenTo)
      return;
  }
  // Without `mutex`, since daemons may take as long as a launch.
  ensureLookouts();
}

/// Whose stream is the first, or one of the first, goes on when all daemons have seen to it,
/// whoever has them do so.
void HeldStreams::ensureLookouts() {
  std::lock_guard exclusive(calling);
  {
    std::lock_guard lock(mutex);
    if (isSeenTo)
      return;
  }
  // The entry of this thread's stream stays until all daemons have been asked.
  bool isDone = true;
  for (StrictDaemon *daemon : daemons)
    isDone = daemon->ensureLookout() && isDone;
  std::lock_guard lock(mutex);
  isSeenTo = isAnyHeld && isDone;
}

void HeldStreams::leave(uint64_t stream) {
  std::lock_guard lock(mutex);
  auto found = streams.find(stream);
  if (found == streams.end() || found->second.number == 0)
    return;
  if (--found->second.number == 0 && found->second.isOver.empty())
    streams.erase(found);
  tell();
}

void HeldStreams::sweep() {
  std::vector<std::pair<uint64_t, IsOver>> asked;
  {
    std::lock_guard lock(mutex);
    for (const auto &[stream, held] : streams)
      for (const IsOver &isOver : held.isOver)
        asked.emplace_back(stream, isOver);
  }
  // Without locks, since the functions may take as long as CUDA does.
  std::erase_if(asked, [](const auto &entry) { return !(*entry.second)(); });
  if (asked.empty())
    return;
  std::lock_guard lock(mutex);
  for (const auto &[stream, isOver] : asked) {
    auto found = streams.find(stream);
    if (found == streams.end())
      continue; // another one has swept, too
    std::erase(found->second.isOver, isOver);
    if (found->second.number == 0 && found->second.isOver.empty())
      streams.erase(found);
  }
  tell();
}

/// With the lock: the words are changed with the number.
void HeldStreams::tell() {
  if (isAnyHeld == !streams.empty())
    return;
  isAnyHeld = !streams.empty();
  isSeenTo = false;
  for (StrictDaemon *daemon : daemons)
    daemon->letAllLeave(!isAnyHeld);
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
    place = std::make_unique<HeldStreams>();
  return *place;
}

} // namespace occl::cuda
