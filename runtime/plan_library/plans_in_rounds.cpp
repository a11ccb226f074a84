// Plans that have been cut into rounds, those used last in front.
#include "runtime/plan_library/plans_in_rounds.h"

#include "plan/transform/rounds.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace occl::plan_library {

PlansInRounds &PlansInRounds::ofProcess() {
  static auto *plans = new PlansInRounds; // also for calls while the process ends
  return *plans;
}

StatusOr<std::shared_ptr<const plan::Plan>> PlansInRounds::resultOf(const Made &made) {
  if (made.plan)
    return made.plan;
  return made.obstacle;
}

StatusOr<std::shared_ptr<const plan::Plan>>
PlansInRounds::find(const std::shared_ptr<const plan::Plan> &plan, uint32_t rounds) {
  if (rounds == 1)
    return plan;
  {
    std::lock_guard lock(mutex);
    // Known, or known to be impossible.
    const auto known = std::ranges::find_if(
        made, [&](const Made &one) { return one.of == plan && one.rounds == rounds; });
    if (known != made.end()) {
      made.splice(made.begin(), made, known);
      return resultOf(made.front());
    }
  }
  // Cutting takes long and is done without the lock.
  Made fresh{plan, rounds, nullptr, {}};
  if (auto cut = plan::inRounds(*plan, rounds))
    fresh.plan = std::make_shared<const plan::Plan>(std::move(*cut));
  else
    fresh.obstacle = {StatusCode::InvalidArgument, cut.message()};
  std::lock_guard lock(mutex); // another thread may have made it, too: then it is there twice
  made.push_front(std::move(fresh));
  // The longest unused goes.
  if (made.size() > kMost)
    made.pop_back();
  return resultOf(made.front());
}

} // namespace occl::plan_library
