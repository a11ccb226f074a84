#include "test/explore/explorer/races.h"

#include "test/explore/explorer/place.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace occl::explore {

namespace {

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}

bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

bool conflict(const Access &a, const Access &b) {
  return (a.bytes & b.bytes) != 0 && (writes(a.kind) || writes(b.kind)) &&
         !(isAtomic(a.kind) && isAtomic(b.kind));
}

/// Whatever conflicts with b conflicts with a, too.
bool covers(const Access &a, const Access &b) {
  return (b.bytes & ~a.bytes) == 0 && (writes(a.kind) || !writes(b.kind)) &&
         (isAtomic(b.kind) || !isAtomic(a.kind));
}

std::string describe(const Access &access) {
  constexpr const char *kWhat[] = {"read", "write", "atomic read", "atomic write"};
  return std::string(kWhat[static_cast<int>(access.kind)]) + " of thread " +
         std::to_string(access.thread) + " at " + describePlace(access.place);
}

} // namespace

std::string Race::text() const {
  char where[32];
  std::snprintf(where, sizeof where, "%p", address);
  return std::string("a data race: nothing orders, at ") + where + ",\n  the " + describe(former) +
         "\n  and the " + describe(latter);
}

void Races::begin() {
  threads.clear();
  words.clear();
  shadow.begin();
  evictions = 0;
  begunAt = now;
  threads.emplace_back();
  tick(0);
}

void Races::start(uint32_t parent, uint32_t child) {
  threads.resize(std::max<size_t>(threads.size(), child + 1));
  threads[child].clock = threads[parent].clock;
  tick(parent);
  tick(child);
}

const Race *Races::access(uint32_t thread, const void *address, size_t bytes, AccessKind kind,
                          const void *place) {
  const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + bytes;
  const VectorClock &clock = threads[thread].clock;
  Access access{clock.of(thread), placeOf(place), static_cast<uint16_t>(thread), 0, kind};
  for (uintptr_t at = begin; at < end; at = (at | (Shadow::kWordBytes - 1)) + 1) {
    const uintptr_t first = at % Shadow::kWordBytes;
    const uintptr_t number = std::min(Shadow::kWordBytes - first, end - at);
    access.bytes = static_cast<uint8_t>(((1u << number) - 1) << first);
    if (const Access *former = remember(shadow.of(at), access, clock))
      return &found.emplace(Race{reinterpret_cast<const void *>(at), *former, access});
  }
  return nullptr;
}

const Race *Races::giveBack(uint32_t thread, const void *block, size_t bytes, const void *place) {
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const Race *race = nullptr;
  shadow.forEachUsed(begin, begin + bytes, [&](uintptr_t first, uintptr_t last) {
    if (!race)
      race = access(thread, reinterpret_cast<const void *>(first), last - first, AccessKind::Write,
                    place);
  });
  return race;
}

inline const Access *Races::remember(Shadow::Accesses &accesses, const Access &access,
                                     const VectorClock &clock) {
  Access *place = nullptr;
  for (Access &former : accesses) {
    if (former.time <= begunAt) {
      place = place ? place : &former;
    } else if (former.time == access.time && covers(former, access)) {
      return nullptr; // the thread's own, and nobody has conflicted since
    } else if (former.time <= clock.of(former.thread)) {
      if (covers(access, former))
        place = &former;
    } else if (conflict(former, access)) {
      return &former;
    }
  }
  if (place || (place = victimOf(accesses, access)))
    *place = access;
  return nullptr;
}

/// What is forgotten for the access, or nullptr. Atomic ones race with the fewest others.
Access *Races::victimOf(Shadow::Accesses &accesses, const Access &access) {
  ++evictions;
  for (size_t i = 0; i < accesses.size(); ++i)
    if (Access &former = accesses[(evictions + i) % accesses.size()]; isAtomic(former.kind))
      return &former;
  return isAtomic(access.kind) ? nullptr : &accesses[evictions % accesses.size()];
}

void Races::acquire(uint32_t thread, const void *word, std::memory_order order) {
  auto found = words.find(word);
  if (found == words.end())
    return;
  Thread &reader = threads[thread];
  (acquires(order) ? reader.clock : reader.acquired).join(found->second);
}

VectorClock Races::release(uint32_t thread, std::memory_order order) {
  if (!releases(order))
    return threads[thread].released;
  VectorClock known = threads[thread].clock;
  tick(thread);
  return known;
}

void Races::publish(const void *word, VectorClock clock) {
  if (clock.isEmpty())
    words.erase(word);
  else
    words[word] = std::move(clock);
}

void Races::update(uint32_t thread, const void *word, std::memory_order order) {
  acquire(thread, word, order);
  VectorClock known = release(thread, order);
  if (!known.isEmpty())
    words[word].join(known);
}

void Races::fence(uint32_t thread, std::memory_order order) {
  Thread &fencing = threads[thread];
  if (acquires(order))
    fencing.clock.join(fencing.acquired);
  if (releases(order)) {
    fencing.released = fencing.clock;
    tick(thread);
  }
}

void Races::forget(const void *address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  shadow.forget(begin, begin + bytes);
}

} // namespace occl::explore
