// The two 8-bit floating-point formats of the Open Compute Project as bits, and their conversion,
// as the processors of GPUs do it: to nearest, ties to even; what is too large, infinity included,
// becomes the largest finite number, and a NaN stays one. Host and device give the same bits for
// all but the payloads of NaNs. Branch-free on the host, so that compilers vectorise loops over it.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

#ifdef __CUDA_ARCH__
#include <cuda_fp8.h>
#endif

namespace occl::interpreter {

/// 4 bits of exponent and 3 of mantissa, no infinity: up to 448.
struct Float8E4m3 {
  uint8_t bits;
};

/// 5 bits of exponent and 2 of mantissa, the upper half of a binary16: up to 57344.
struct Float8E5m2 {
  uint8_t bits;
};

// The formulas, as in half.h.
namespace detail {

/// What distinguishes the formats: the bias of the exponent, bits of mantissa, and as bits the
/// largest finite number, infinity (none: what no number has), and a NaN.
template <class Format> struct Float8Traits;
template <> struct Float8Traits<Float8E4m3> {
  static constexpr unsigned kBias = 7, kMantissaBits = 3, kMaxFinite = 0x7e, kInfinity = 0x80,
                            kNan = 0x7f;
  static constexpr float kRebias = 0x1p120f;
};
template <> struct Float8Traits<Float8E5m2> {
  static constexpr unsigned kBias = 15, kMantissaBits = 2, kMaxFinite = 0x7b, kInfinity = 0x7c,
                            kNan = 0x7f;
  static constexpr float kRebias = 0x1p112f;
};

template <class Format, class Floats, class Words> OCCL_INLINE Floats floatFromFloat8(Words bits) {
  using Traits = Float8Traits<Format>;
  constexpr unsigned shift = 23 - Traits::kMantissaBits;
  Words sign = (bits & 0x80) << 24, magnitude = bits & 0x7f;
  // Exponent and mantissa move to their place in a float; the multiplication rebiases the exponent
  // and normalises subnormals, exactly.
  Floats scaled = __builtin_bit_cast(Floats, magnitude << shift) * Traits::kRebias;
  Words zero = magnitude - magnitude;
  Words special = magnitude == Traits::kInfinity ? zero + 0x7f800000 : zero + 0x7fc00000;
  Words finite = __builtin_bit_cast(Words, scaled);
  return __builtin_bit_cast(Floats, sign | (magnitude > Traits::kMaxFinite ? special : finite));
}

template <class Format, class Floats, class Words> OCCL_INLINE Words float8FromFloat(Floats value) {
  using Traits = Float8Traits<Format>;
  constexpr unsigned shift = 23 - Traits::kMantissaBits, rebias = 127 - Traits::kBias;
  Words bits = __builtin_bit_cast(Words, value);
  Words sign = bits & 0x80000000, magnitude = bits ^ sign;
  // Normal result: rebias, then round by adding just under half a unit plus the last kept bit.
  Words normal =
      (magnitude - (rebias << 23) + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1)) >>
      shift;
  // Subnormal result: added to the power of two whose unit in the last place is the format's
  // smallest number, the float unit itself rounds.
  constexpr unsigned aligned = (127 + 1 - Traits::kBias + shift) << 23;
  Words subnormal = __builtin_bit_cast(Words, __builtin_bit_cast(Floats, magnitude) +
                                                  __builtin_bit_cast(float, aligned)) -
                    aligned;
  Words result = magnitude < ((rebias + 1) << 23) ? subnormal : normal;
  Words zero = magnitude - magnitude;
  result = result > Traits::kMaxFinite ? zero + Traits::kMaxFinite : result;
  result = magnitude > 0x7f800000 ? zero + Traits::kNan : result;
  return result | sign >> 24;
}

} // namespace detail

#ifdef __CUDA_ARCH__

OCCL_INLINE float toFloat(Float8E4m3 value) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(value.bits, __NV_E4M3)));
}
OCCL_INLINE float toFloat(Float8E5m2 value) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(value.bits, __NV_E5M2)));
}
OCCL_INLINE Float8E4m3 toFloat8E4m3(float value) {
  return {__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3)};
}
OCCL_INLINE Float8E5m2 toFloat8E5m2(float value) {
  return {__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2)};
}

#else

OCCL_INLINE float toFloat(Float8E4m3 value) {
  return detail::floatFromFloat8<Float8E4m3, float, uint32_t>(value.bits);
}
OCCL_INLINE float toFloat(Float8E5m2 value) {
  return detail::floatFromFloat8<Float8E5m2, float, uint32_t>(value.bits);
}
OCCL_INLINE Float8E4m3 toFloat8E4m3(float value) {
  return {static_cast<uint8_t>(detail::float8FromFloat<Float8E4m3, float, uint32_t>(value))};
}
OCCL_INLINE Float8E5m2 toFloat8E5m2(float value) {
  return {static_cast<uint8_t>(detail::float8FromFloat<Float8E5m2, float, uint32_t>(value))};
}

#endif

} // namespace occl::interpreter
