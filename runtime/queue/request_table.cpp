// Requests: generation, state and result of a slot are one word, so that a look is one load.
#include "runtime/queue/request_table.h"

namespace occl::daemon {

RequestTable::RequestTable(uint32_t capacity)
    : capacity(capacity), slots(new Slot[capacity]), freeSlots(capacity) {
  for (uint32_t index = 0; index < capacity; ++index)
    freeSlots.push(index);
}

std::optional<RequestId> RequestTable::open(const Callback &callback, const RequestOrigin &origin) {
  std::optional<uint32_t> index = freeSlots.pop();
  if (!index)
    return std::nullopt;
  Slot &slot = slots[*index];
  slot.callback = callback;
  slot.origin = origin;
  // The generation tells a request from all earlier ones in its slot.
  uint64_t generation = generationIn(slot.word.load(std::memory_order_relaxed));
  slot.word.store(pack(generation, Open), std::memory_order_release);
  return generation << kIndexBits | *index;
}

void RequestTable::cancel(RequestId request) { recycle(request); }

void RequestTable::recycle(RequestId request) {
  slots[indexOf(request)].word.store(pack(generationOf(request) + 1, Free),
                                     std::memory_order_release);
  freeSlots.push(indexOf(request));
}

void RequestTable::complete(RequestId request, StatusCode result) {
  Slot &slot = slots[indexOf(request)];
  // After this store a slot without callback is the taker's.
  slot.word.store(pack(generationOf(request), slot.callback ? CallingBack : Done, result),
                  std::memory_order_release);
}

RequestTable::CallbackEnd RequestTable::callBack(uint32_t index) {
  Slot &slot = slots[index];
  uint64_t word = slot.word.load(std::memory_order_acquire);
  RequestId request = generationIn(word) << kIndexBits | index;
  const Callback &callback = slot.callback;
  // The slot stays taken while the callback runs, which may ask for its own request.
  CallbackEnd end{callback.invoke(callback.function, request, resultIn(word), callback.user),
                  slot.origin};
  recycle(request);
  return end;
}

RequestTable::Phase RequestTable::phase(RequestId request) const {
  if (indexOf(request) >= capacity || generationOf(request) == 0)
    return Phase::Never;
  uint64_t word = slots[indexOf(request)].word.load(std::memory_order_acquire);
  // Another generation in the slot: an earlier request is over, a later one has never been.
  if (generationIn(word) != generationOf(request))
    return generationIn(word) > generationOf(request) ? Phase::Forgotten : Phase::Never;
  switch (stateIn(word)) {
  case Open:
    return Phase::InFlight;
  case Done:
  case CallingBack:
    return Phase::Complete;
  case Free:
    break;
  }
  return Phase::Never;
}

std::optional<StatusCode> RequestTable::take(RequestId request) {
  Slot &slot = slots[indexOf(request)];
  uint64_t word = slot.word.load(std::memory_order_acquire);
  if (generationIn(word) != generationOf(request))
    return std::nullopt;
  StatusCode result = resultIn(word);
  // The result can be seen before the callback has run; the slot is given back after it.
  if (stateIn(word) == CallingBack)
    return result;
  // Of several threads one takes the result.
  if (stateIn(word) != Done ||
      !slot.word.compare_exchange_strong(word, pack(generationOf(request) + 1, Free),
                                         std::memory_order_acq_rel))
    return std::nullopt;
  freeSlots.push(indexOf(request));
  return result;
}

std::string RequestTable::describeFull() const {
  uint32_t untaken = 0;
  // The states may change meanwhile: the text is a hint.
  for (uint32_t index = 0; index < capacity; ++index)
    untaken += stateIn(slots[index].word.load(std::memory_order_relaxed)) == Done;
  return "a request: all " + std::to_string(capacity) + " of config->maxInFlight are taken, " +
         std::to_string(untaken) + " by what is complete and was not waited for";
}

} // namespace occl::daemon
