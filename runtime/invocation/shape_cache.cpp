// The shapes of a rank, the last used in front.
#include "runtime/invocation/shape_cache.h"

#include <initializer_list>
#include <utility>

namespace occl::daemon {

size_t ShapeCache::Hash::operator()(const Signature &signature) const {
  uint64_t hash = 0;
  for (uint64_t word :
       {signature.planHash, signature.count, uint64_t{signature.root},
        uint64_t{signature.kind} << 16 | static_cast<uint64_t>(signature.type) << 8 |
            static_cast<uint64_t>(signature.op)})
    hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ hash >> 29;
  return hash ^ hash >> 32;
}

Collective *ShapeCache::findOlder(const Signature &signature) {
  auto found = bySignature.find(signature);
  if (found == bySignature.end())
    return nullptr;
  // The front is for what is used.
  shapes.splice(shapes.begin(), shapes, found->second);
  return found->second->get();
}

Collective &ShapeCache::add(std::unique_ptr<Collective> shape) {
  // Another thread may have bound the same meanwhile.
  if (Collective *known = find(shape->signature))
    return *known;
  shapes.push_front(std::move(shape));
  bySignature.emplace(shapes.front()->signature, shapes.begin());
  // The longest unused go, but for those that something refers to.
  for (auto last = shapes.end();
       shapes.size() > kMostShapes && last != std::next(shapes.begin());) {
    auto candidate = std::prev(last);
    if ((*candidate)->unreclaimed != 0) {
      last = candidate;
      continue;
    }
    bySignature.erase((*candidate)->signature);
    last = shapes.erase(candidate);
  }
  return *shapes.front();
}

} // namespace occl::daemon
