#include "tools/demo/plans_by_size.h"

#include "runtime/api/capi/handles.h"

namespace occl::demo {

PlansBySize::~PlansBySize() {
  for (occlPlan_t plan : plans)
    occlPlanDestroy(plan);
}

occlResult_t PlansBySize::load(const std::string &path) {
  occlPlan_t plan = nullptr;
  occlResult_t result = occlPlanLoad(path.c_str(), &plan);
  if (result == occlSuccess)
    plans.push_back(plan);
  return result;
}

occlPlan_t PlansBySize::find(uint64_t bytes) const {
  for (occlPlan_t plan : plans)
    if (plan->plan->minBytes <= bytes && bytes <= plan->plan->maxBytes)
      return plan;
  return nullptr;
}

} // namespace occl::demo
