// Plans in rounds, as partitioned collectives execute them: made once, for all communicators of the
// process.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/sync/light_mutex.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

namespace occl::plan_library {

/// Thread safety: any.
class PlansInRounds {
public:
  static PlansInRounds &ofProcess();

  /// What plan::inRounds makes of the plan, which is a verified one; InvalidArgument: it cannot be
  /// cut so. Of the last ones that were asked for this takes no time, and they stay alive, as do
  /// the plans that they were made of.
  StatusOr<std::shared_ptr<const plan::Plan>> find(const std::shared_ptr<const plan::Plan> &plan,
                                                   uint32_t rounds);

private:
  /// Those of many ranks have some MiB.
  static constexpr size_t kMost = 32;

  struct Made {
    std::shared_ptr<const plan::Plan> of;
    uint32_t rounds = 0;
    std::shared_ptr<const plan::Plan> plan; // null: it cannot be
    Status obstacle;
  };
  static StatusOr<std::shared_ptr<const plan::Plan>> resultOf(const Made &made);

  LightMutex mutex;     // guards below
  std::list<Made> made; // the last one that was asked for first
};

} // namespace occl::plan_library
