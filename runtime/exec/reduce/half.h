// The two 16-bit floating-point formats as bits, and their conversion. Both directions round to
// nearest, ties to even; a NaN stays one. Host and device give the same bits for all but the
// payloads of NaNs. Branch-free on the host, so that compilers vectorise loops over it.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

#ifdef __CUDA_ARCH__
#include <cuda_fp16.h>
#endif

namespace occl::interpreter {

/// IEEE 754 binary16.
struct Half {
  uint16_t bits;
};

/// The upper half of a binary32.
struct Bfloat16 {
  uint16_t bits;
};

// The formulas, for a float and its bits, or for vectors of them (GCC's vector extension): Floats
// is float or a vector of floats, Words uint32_t or a vector of as many.
namespace detail {

template <class Floats, class Words> OCCL_INLINE Words bfloatFromFloat(Floats value) {
  Words bits = __builtin_bit_cast(Words, value);
  Words rounded = bits + 0x7fff + ((bits >> 16) & 1);
  // Rounding could carry a NaN's payload into the exponent: keep its upper bits and make it quiet.
  return (value != value ? bits | 0x400000 : rounded) >> 16;
}

template <class Floats, class Words> OCCL_INLINE Floats floatFromHalf(Words half) {
  Words sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;
  // Exponent and mantissa move to their place in a float; multiplying by 2^112 rebiases the
  // exponent and normalises subnormals, exactly.
  Floats scaled = __builtin_bit_cast(Floats, magnitude << 13) * 0x1p112f;
  Words special = 0x7f800000 | magnitude << 13; // infinity and NaN
  Words bits = magnitude >= 0x7c00 ? special : __builtin_bit_cast(Words, scaled);
  return __builtin_bit_cast(Floats, sign | bits);
}

template <class Floats, class Words> OCCL_INLINE Words halfFromFloat(Floats value) {
  Words bits = __builtin_bit_cast(Words, value);
  Words sign = bits & 0x80000000, magnitude = bits ^ sign;
  // Normal result: rebias, then round by adding just under half a unit plus the last kept bit.
  Words normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal result: adding 0.5 aligns the mantissa so that the float unit itself rounds.
  Words subnormal =
      __builtin_bit_cast(Words, __builtin_bit_cast(Floats, magnitude) + 0.5f) - (126u << 23);
  Words infinite = magnitude - magnitude + 0x7c00;
  Words result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? infinite : result; // 65520 and more
  result = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : result;
  return result | sign >> 16;
}

} // namespace detail

OCCL_INLINE float toFloat(Bfloat16 value) {
  return __builtin_bit_cast(float, uint32_t(value.bits) << 16);
}

#ifdef __CUDA_ARCH__

OCCL_INLINE Bfloat16 toBfloat16(float value) {
  Bfloat16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
}
OCCL_INLINE float toFloat(Half value) { return __half2float(__ushort_as_half(value.bits)); }
OCCL_INLINE Half toHalf(float value) { return {__half_as_ushort(__float2half_rn(value))}; }

#else

OCCL_INLINE Bfloat16 toBfloat16(float value) {
  return {static_cast<uint16_t>(detail::bfloatFromFloat<float, uint32_t>(value))};
}
OCCL_INLINE float toFloat(Half value) { return detail::floatFromHalf<float, uint32_t>(value.bits); }
OCCL_INLINE Half toHalf(float value) {
  return {static_cast<uint16_t>(detail::halfFromFloat<float, uint32_t>(value))};
}

#endif

} // namespace occl::interpreter
