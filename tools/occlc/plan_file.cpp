#include "tools/occlc/plan_file.h"

#include "plan/reader.h"

#include <iostream>

namespace occl::tools {

std::optional<plan::Plan> readVerified(const std::string &path, plan::VerifyResult &result) {
  plan::Expected<plan::Plan> plan = plan::readPlanFile(path);
  if (!plan) {
    std::cerr << "error: " << plan.message() << '\n';
    return std::nullopt;
  }
  result = plan::verifyPlan(*plan);
  if (result)
    return std::move(*plan);
  std::cerr << path << ": error: the plan is wrong\n" << result.text();
  return std::nullopt;
}

} // namespace occl::tools
