// Shapes of calls, by what the calls say: bound once, used by any number of sequences.
#pragma once

#include "runtime/invocation/collective.h"

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>

namespace occl::daemon {

/// Thread safety: one thread at a time, the admission's lock held.
class ShapeCache {
public:
  /// nullptr if there is none.
  Collective *find(const Signature &signature) {
    if (!shapes.empty() && shapes.front()->signature == signature)
      return shapes.front().get();
    return findOlder(signature);
  }
  /// Takes it, unless there is one already; the one that is there. Those that have not been looked
  /// up for longest go, but for what an invocation refers to.
  Collective &add(std::unique_ptr<Collective> shape);

private:
  /// A shape is some tens of KiB.
  static constexpr size_t kMostShapes = 256;

  struct Hash {
    size_t operator()(const Signature &signature) const;
  };
  using Shapes = std::list<std::unique_ptr<Collective>>;

  Collective *findOlder(const Signature &signature);

  Shapes shapes; // the last one that was looked up first
  std::unordered_map<Signature, Shapes::iterator, Hash> bySignature;
};

} // namespace occl::daemon
