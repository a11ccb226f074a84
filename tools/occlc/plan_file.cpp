#include "tools/occlc/plan_file.h"

#include "compiler/driver/Printing.h"
#include "plan/io/reader.h"
#include "tools/occlc/output.h"

namespace occl::tools {

std::optional<plan::Plan> readVerified(const std::string &path, plan::VerifyResult &result) {
  support::Expected<plan::Plan> plan = plan::readPlanFile(path);
  // Reading and proving fail with different codes, but both say where.
  if (!plan) {
    driver::printUnreadablePlan(plan.message(), path, diagnosticFormat());
    return std::nullopt;
  }
  result = plan::verifyPlan(*plan);
  if (result)
    return std::move(*plan);
  driver::printOfFile(*plan, result, path, diagnosticFormat());
  return std::nullopt;
}

} // namespace occl::tools
