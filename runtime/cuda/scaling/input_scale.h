// What a call does to its rank's input before anybody reads it. No CUDA in this header.
#pragma once

#include <cstdint>

namespace occl::cuda {

/// An element of the input's type, at any alignment; at most one of the two. Null both: none.
struct InputFactor {
  const void *onHost = nullptr; // read before the call returns
  /// Memory that the rank's device can read: read when the call runs.
  const void *onDevice = nullptr;

  bool isNone() const { return !onHost && !onDevice; }
};

/// Each element is multiplied by the factor, or, of floats, divided by the divisor. Not both.
struct InputScale {
  InputFactor factor;
  uint32_t divisor = 1;

  bool isNone() const { return factor.isNone() && divisor == 1; }
};

} // namespace occl::cuda
