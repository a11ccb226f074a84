// What the next invocation of a small shape takes over from an earlier one of its sequence, for the
// lane (runtime/sched/lane_run.h): all addresses follow from the ordinal and from where the
// pre-posted rings begin.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/invocation/collective.h"

#include <cstdint>
#include <vector>

namespace occl::daemon {

/// As long as the rings of all ranks are what they were. Under the admission's lock.
class Lane {
public:
  /// Looks everything up. It is not known afterwards if the shape is not for the lane, or not all
  /// rings are known. The sequence's invocations of the shape use its ring.
  void find(const IdState &id, const Collective &shape, const Fabric &fabric);
  void forget() { collective = nullptr; }
  bool isKnown(const IdState &id) const {
    return collective && id.ringsForgotten.load(std::memory_order_relaxed) == ringsForgotten;
  }
  /// Whether the buffers are such as Admission::checkBuffers accepts.
  bool accepts(const void *input, const void *output) const {
    return collective->aliasing.accepts(input, output);
  }
  /// Of the own block, from the start of the arena; any if it needs none.
  uint64_t arenaOffset(uint64_t ordinal) const {
    return ownOffset + ordinal % transport::AnnounceCell::kRecords * ownBlockBytes;
  }
  /// Makes the view of an earlier invocation of the shape that of invocation `ordinal`.
  void prepare(interpreter::Invocation &view, const IdState &id, uint64_t ordinal,
               const void *input, void *output) const;

private:
  struct Ring {
    char *begin = nullptr;
    uint64_t blockBytes = 0;
    interpreter::Place place = 0;
  };
  const Collective *collective = nullptr; // null: not known
  uint32_t ringsForgotten = 0;
  uint64_t ownOffset = 0, ownBlockBytes = 0;
  std::vector<Ring> rings;
};

} // namespace occl::daemon
