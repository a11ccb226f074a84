// Matches a device's compute capability with the code that the library was built with.
#include "runtime/cuda/device/device_code.h"

#include <algorithm>

namespace occl::cuda {

namespace {

constexpr const char *kUntried = " (untried)";

} // namespace

std::string capabilityText(uint32_t capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string describe(const DeviceCode &code) {
  std::string text;
  for (uint32_t each : code.machine)
    text += (text.empty() ? "" : ", ") + capabilityText(each) + (isTried(each) ? "" : kUntried);
  if (code.ptx != 0)
    text += (text.empty() ? "PTX of " : ", PTX of ") + capabilityText(code.ptx) + kUntried;
  return text.empty() ? "none" : text;
}

std::string whyNoCode(const DeviceCode &code, uint32_t capability) {
  // Machine code runs on its own major number, from its minor number on; PTX on anything later.
  const bool hasMachineCode = std::ranges::any_of(code.machine, [&](uint32_t each) {
    return each / 10 == capability / 10 && each % 10 <= capability % 10;
  });
  if (hasMachineCode || (code.ptx != 0 && code.ptx <= capability))
    return "";
  return "compute capability " + capabilityText(capability) + ", and this library has code for " +
         describe(code) +
         "; `make package` builds one with code for 8.0, 9.0, 10.0 and later, and other ones need "
         "a line in build_defs/cuda.bzl";
}

} // namespace occl::cuda
