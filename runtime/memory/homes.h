// Places in an arena that are each kept for one user, as long as it lives, and lent to others while
// it does not use it and nothing else is left.
#pragma once

#include "runtime/memory/arena.h"

#include <cstdint>
#include <list>

namespace occl::transport {

/// Of one user, who enters and leaves it.
struct Home {
  uint64_t offset = 0, bytes = 0;
  bool isHeld = false; // the arena gives none of it to others
  bool isUsed = false; // then it is held
};

/// Where homes lie follows from which there are, in whatever order others went: whoever makes and
/// gives up alike has them alike. They lie at the end of the arena, where its other blocks come
/// last. Thread safety: none.
class Homes {
public:
  explicit Homes(Arena &arena) : arena(arena) {}

  /// Null: there is no room beside the others. Others may be in it still: see enter().
  Home *make(uint64_t bytes);
  /// Its user has none any more; if it is used, once it is left. Needs no memory.
  void giveUp(Home &home);
  /// False while some of it is taken, by its last use or from the arena.
  bool enter(Home &home);
  /// Needs no memory.
  void leave(Home &home);

  /// Gives what is not used to the arena. False: there is none.
  bool lend();
  /// Takes back what is free of that, before others take from the arena. False: not all is.
  bool recall();
  /// Whether some of the range is of a home that is lent, or was never free.
  bool isLent(uint64_t offset, uint64_t bytes) const;
  /// Of all of which no user has given up its own.
  uint64_t bytes() const { return kept; }

private:
  bool hold(Home &home);
  void release(std::list<Home> &list, Home &home);

  Arena &arena;
  std::list<Home> homes;   // those that lie behind come first
  std::list<Home> leaving; // given up and used
  uint64_t kept = 0;
  uint64_t numLoose = 0; // of `homes`: that are not held
};

} // namespace occl::transport
