// Marks whose data a copy engine has stored: what a kernel behind the copy says of them.
// docs/decisions/gpu/partitioned-copies.md. Without CUDA host code, for tests.
#pragma once

#include "runtime/api/occl_device.cuh"

#include <cstdint>

namespace occl::device::detail {

/// Of partitions whose data are at the receiver: those first to last, all of their messages, which
/// nobody else marks. The units are claimed before the marks are there to be seen, so that nobody
/// who waits stores them once more, and stored behind them, as the epoch may end then.
template <class Group>
OCCL_DEVICE_FUNCTION void publishUnits(Group group, const Part &part, uint64_t first,
                                       uint64_t last) {
  const State &state = *part.s;
  const Cut &cut = state.cut;
  const uint64_t e = part.e, firstMessage = first / cut.perMessage,
                 endMessage = last / cut.perMessage + 1;
  const uint64_t firstUnit = firstMessage * cut.unitsOfMessage,
                 endUnit = endMessage * cut.unitsOfMessage, step = group.size();
  fenceSystem(); // the copy ended before this kernel began: its data come before the words
  for (uint64_t unit = firstUnit + group.rank(); unit < endUnit; unit += step) {
    if (part.claim(unit))
      storeWord(&state.peer.arrived[unit], e);
    else
      part.misused(Misuse::Twice, first);
  }
  fenceDevice();
  group.sync();
  for (uint64_t p = first + group.rank(); p <= last; p += step)
    if (raise(&state.marked[p], e) >= e)
      part.misused(Misuse::Twice, p);
  if (state.counted != nullptr)
    for (uint64_t m = firstMessage + group.rank(); m < endMessage; m += step)
      add(&state.counted[m], part.partitionsOf(m));
  fenceDevice();
  group.sync();
  for (uint64_t unit = firstUnit + group.rank(); unit < endUnit; unit += step)
    storeWord(&state.units[unit], 2 * e);
}

/// The same if all is as the host saw it: `epoch` is under way. After a failure nothing arrives.
template <class Group>
OCCL_DEVICE_FUNCTION void publishCopied(Group group, const Part &part, uint64_t epoch,
                                        uint64_t first, uint64_t last) {
  uint64_t isRight = 0;
  if (group.rank() == 0 && !part.hasFailed()) {
    isRight = part.e == epoch && loadWord(&part.s->done) < epoch ? 1 : 0;
    if (isRight == 0)
      part.misused(Misuse::NoEpoch, first);
  }
  if (group.broadcast(isRight) != 0)
    publishUnits(group, part, first, last);
}

/// One thread: a mark of what is in a copy of this epoch, which may not have ended. As
/// Part::mark() has it, but for the mark.
OCCL_DEVICE_FUNCTION void refuseMark(const Part &part, uint64_t p) {
  part.misused(loadWord(&part.s->done) >= part.e ? Misuse::NoEpoch : Misuse::Twice, p);
}

} // namespace occl::device::detail
