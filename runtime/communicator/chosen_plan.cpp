// Which of the plans that come with OCCL serves a call.
#include "runtime/communicator/handles.h"

namespace occl::communicator {

StatusOr<ChosenPlan> choosePlan(const occlComm &, occlKind_t kind, uint64_t, uint32_t) {
  return Status(StatusCode::InvalidArgument,
                "kind " + std::to_string(kind) +
                    ": OCCL comes with no plans yet; compile one with occlc, and give it to the "
                    "call with occlKindPlan");
}

} // namespace occl::communicator
