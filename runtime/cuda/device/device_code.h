// Which device can run which code: no CUDA.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace occl::cuda {

/// Of a library: compute capabilities, 90 for 9.0, ascending.
struct DeviceCode {
  std::span<const uint32_t> machine;
  uint32_t ptx = 0; // 0: none
};

/// "9.0".
std::string capabilityText(uint32_t capability);
/// "8.0 (untried), 9.0, PTX of 9.0 (untried)"; "none".
std::string describe(const DeviceCode &code);

/// Why a device of that compute capability runs none of it, and what to do; "" if it runs some. A
/// device runs machine code of its major number and a minor one that is not above its own, and PTX
/// that is not above it.
std::string whyNoCode(const DeviceCode &code, uint32_t capability);

/// Whether tests have run on devices of it, with machine code.
constexpr bool isTried(uint32_t capability) { return capability == 90; }

} // namespace occl::cuda
