// The forms of the completion queue.
#include "runtime/queue/completion_queue.h"

#include "runtime/queue/completion_ring.h"
#include "runtime/queue/completion_slots.h"
#include "runtime/queue/packed_completion_ring.h"

namespace occl::queue {

std::unique_ptr<CompletionQueue> makeCompletionQueue(CompletionForm form, uint32_t capacity,
                                                     uint64_t start) {
  switch (form) {
  case CompletionForm::Ring:
    return std::make_unique<CompletionRing>(capacity, start);
  case CompletionForm::Slots:
    return std::make_unique<CompletionSlots>(capacity);
  case CompletionForm::PackedRing:
    break;
  }
  return std::make_unique<PackedCompletionRing>(capacity, start);
}

} // namespace occl::queue
