#include "tools/occlc/output.h"

#include "plan/writer.h"

#include <iostream>

namespace occl::tools {

int fail(const std::string &message) {
  std::cerr << "error: " << message << '\n';
  return 1;
}

int writePlan(const plan::Plan &plan, const std::string &path) {
  plan::Status status = path == "-" ? plan::writePlan(plan, plan::Format::Json, std::cout)
                                    : plan::writePlanFile(plan, path);
  return status ? 0 : fail(status.message());
}

std::string withNewline(std::string text) {
  if (text.empty() || text.back() != '\n')
    text += '\n';
  return text;
}

} // namespace occl::tools
