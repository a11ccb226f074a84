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

namespace detail {
OCCL_INLINE float asFloat(uint32_t bits) { return __builtin_bit_cast(float, bits); }
OCCL_INLINE uint32_t asBits(float value) { return __builtin_bit_cast(uint32_t, value); }
} // namespace detail

OCCL_INLINE float toFloat(Bfloat16 value) { return detail::asFloat(uint32_t(value.bits) << 16); }

OCCL_INLINE Bfloat16 toBfloat16(float value) {
  uint32_t bits = detail::asBits(value);
  uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  // Rounding could carry a NaN's payload into the exponent: keep its upper bits and make it quiet.
  uint32_t result = value != value ? bits | 0x400000 : rounded;
  return {static_cast<uint16_t>(result >> 16)};
}

#ifdef __CUDA_ARCH__

OCCL_INLINE float toFloat(Half value) { return __half2float(__ushort_as_half(value.bits)); }
OCCL_INLINE Half toHalf(float value) { return {__half_as_ushort(__float2half_rn(value))}; }

#else

OCCL_INLINE float toFloat(Half value) {
  uint32_t sign = uint32_t(value.bits & 0x8000) << 16;
  uint32_t magnitude = value.bits & 0x7fff;
  // Exponent and mantissa move to their place in a float; multiplying by 2^112 rebiases the
  // exponent and normalises subnormals, exactly.
  float scaled = detail::asFloat(magnitude << 13) * detail::asFloat((127 + 112) << 23);
  uint32_t special = 0x7f800000 | magnitude << 13; // infinity and NaN
  return detail::asFloat(sign | (magnitude >= 0x7c00 ? special : detail::asBits(scaled)));
}

OCCL_INLINE Half toHalf(float value) {
  uint32_t bits = detail::asBits(value);
  uint32_t sign = bits & 0x80000000, magnitude = bits ^ sign;
  // Normal result: rebias, then round by adding just under half a unit plus the last kept bit.
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal result: adding 0.5 aligns the mantissa so that the float unit itself rounds.
  uint32_t subnormal = detail::asBits(detail::asFloat(magnitude) + 0.5f) - detail::asBits(0.5f);
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result; // 65520 and more round to infinity
  result = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : result;
  return {static_cast<uint16_t>(result | sign >> 16)};
}

#endif

} // namespace occl::interpreter
