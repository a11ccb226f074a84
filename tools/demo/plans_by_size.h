// Plans of one collective from files, of which a call takes the first that is meant for its size.
#pragma once

#include "runtime/api/occl.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::demo {

/// Thread safety: find() by any; load() by one thread at a time.
class PlansBySize {
public:
  PlansBySize() = default;
  ~PlansBySize();
  PlansBySize(const PlansBySize &) = delete;
  PlansBySize &operator=(const PlansBySize &) = delete;

  /// Adds the plan of this file, behind the others. Errors: those of occlPlanLoad.
  occlResult_t load(const std::string &path);

  /// The first one that is meant for so many bytes of one part, or NULL. It is destroyed with this.
  occlPlan_t find(uint64_t bytes) const;

private:
  std::vector<occlPlan_t> plans;
};

} // namespace occl::demo
