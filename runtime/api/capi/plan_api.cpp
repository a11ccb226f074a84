// Plans of the program's own: read from a file, verified, asked for their names, destroyed.
#include "plan/io/reader.h"
#include "plan/model/hash.h"
#include "plan/verify/verifier.h"
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"

#include <utility>

using namespace occl;
using namespace occl::communicator;

occlPlan_t communicator::adoptPlan(plan::Plan verified) {
  auto handle = std::make_unique<occlPlan>();
  handle->hash = plan::hashPlan(verified);
  handle->plan = std::make_shared<const plan::Plan>(std::move(verified));
  return handle.release();
}

occlResult_t occlPlanLoad(const char *path, occlPlan_t *handle) {
  if (!path || !handle)
    return reportInvalid("occlPlanLoad", "path and plan must not be NULL");
  return guarded([&]() -> Status {
    auto read = plan::readPlanFile(path);
    if (!read)
      return {StatusCode::InvalidPlan, read.message()};
    // Executors trust plans, so a plan is verified before anything can bind it.
    plan::VerifyResult verified = plan::verifyPlan(*read, {.findSmallestDepth = false});
    if (!verified)
      return {StatusCode::InvalidPlan, std::string(path) + ": " + verified.text()};
    *handle = adoptPlan(std::move(*read));
    return {};
  });
}

occlResult_t occlPlanDestroy(occlPlan_t plan) {
  delete plan;
  return occlSuccess;
}

occlResult_t occlPlanQuery(occlPlan_t plan, uint32_t *numRanks, const char **collective,
                           const char **name) {
  if (!plan)
    return reportInvalid("occlPlanQuery", "plan must not be NULL");
  if (numRanks)
    *numRanks = plan->plan->numRanks;
  if (collective)
    *collective = plan->plan->collective.c_str();
  if (name)
    *name = plan->plan->name.c_str();
  return occlSuccess;
}
