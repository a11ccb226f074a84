// The last accesses of each word of memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace occl::explore {

enum class AccessKind : uint8_t { Read, Write, AtomicRead, AtomicWrite };

constexpr bool writes(AccessKind kind) {
  return kind == AccessKind::Write || kind == AccessKind::AtomicWrite;
}
constexpr bool isAtomic(AccessKind kind) { return kind >= AccessKind::AtomicRead; }

/// An access to some bytes of a word. Its time and its thread are its epoch.
struct Access {
  uint64_t time;
  uint32_t place; // place.h
  uint16_t thread;
  uint8_t bytes; // a bit for each
  AccessKind kind;
};
static_assert(sizeof(Access) == 16);

class Shadow {
public:
  static constexpr uintptr_t kWordBytes = 8, kPageBytes = 4096;
  /// Those of one word that are remembered; TSan's number, too.
  using Accesses = std::array<Access, 4>;

  /// The next schedule. Those of former ones may stay where they are.
  void begin();
  /// Of the word of this address.
  Accesses &of(uintptr_t address);
  /// Calls visit(begin, end) for each part of the memory where there are any of this schedule.
  template <class Visit> void forEachUsed(uintptr_t begin, uintptr_t end, const Visit &visit);
  /// The memory has been given back or handed out again.
  void forget(uintptr_t begin, uintptr_t end);

private:
  static constexpr uintptr_t kRecent = 256;
  struct Page {
    uint64_t usedIn = 0; // schedule
    std::array<Accesses, kPageBytes / kWordBytes> words{};
  };
  struct Recent {
    uintptr_t number = ~uintptr_t{0};
    Page *page = nullptr;
  };

  Page &pageOf(uintptr_t number);

  uint64_t schedule = 0;
  std::map<uintptr_t, std::unique_ptr<Page>> pages; // by address / kPageBytes
  std::array<Recent, kRecent> recent;               // of this schedule
};

inline Shadow::Accesses &Shadow::of(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  const Recent &last = recent[number % kRecent];
  Page &page = last.number == number ? *last.page : pageOf(number);
  return page.words[address % kPageBytes / kWordBytes];
}

template <class Visit>
void Shadow::forEachUsed(uintptr_t begin, uintptr_t end, const Visit &visit) {
  for (auto page = pages.lower_bound(begin / kPageBytes);
       page != pages.end() && page->first * kPageBytes < end; ++page)
    if (page->second->usedIn == schedule)
      visit(std::max(begin, page->first * kPageBytes),
            std::min(end, (page->first + 1) * kPageBytes));
}

} // namespace occl::explore
