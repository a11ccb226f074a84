// The last accesses of each word of memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace occl::explore {

enum class AccessKind : uint8_t { Read, Write, AtomicRead, AtomicWrite };

constexpr bool writes(AccessKind kind) {
  return kind == AccessKind::Write || kind == AccessKind::AtomicWrite;
}
constexpr bool isAtomic(AccessKind kind) { return kind >= AccessKind::AtomicRead; }

/// An access to some bytes of a word. Its time and its thread are its epoch.
struct Access {
  uint64_t time : 48;
  uint64_t bytes : 8; // a bit for each
  AccessKind kind : 8;
  uint64_t place : 48; // where the call returns to
  uint64_t thread : 16;
};
static_assert(sizeof(Access) == 16);

class Shadow {
public:
  static constexpr uintptr_t kWordBytes = 8;
  /// Those of one word that are remembered; TSan's number, too.
  using Accesses = std::array<Access, 4>;

  /// Of the word of this address.
  Accesses &of(uintptr_t address);
  /// The memory has been given back or handed out again.
  void forget(uintptr_t begin, uintptr_t end);

private:
  static constexpr uintptr_t kPageBytes = 4096, kRecent = 256;
  using Page = std::array<Accesses, kPageBytes / kWordBytes>;
  struct Recent {
    uintptr_t number = ~uintptr_t{0};
    Page *page = nullptr;
  };

  Page &pageOf(uintptr_t number);

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages; // by address / kPageBytes
  std::array<Recent, kRecent> recent;
};

inline Shadow::Accesses &Shadow::of(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  const Recent &last = recent[number % kRecent];
  Page &page = last.number == number ? *last.page : pageOf(number);
  return page[address % kPageBytes / kWordBytes];
}

} // namespace occl::explore
