// Floats of 16 bits to and from float.
#pragma once

#include <bit>
#include <cstdint>

#include "pidcomm/tables.h"

namespace pidcomm {

/// The exponents of float16 and float differ by 112. The product with 2^112 is exact, also for
/// subnormal numbers.
inline float widened(pidcomm_float16 half) {
  const uint32_t magnitude = (half.bits & 0x7FFFu) << 13, sign = (half.bits & 0x8000u) << 16;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = magnitude | 0x7F800000;  // infinity or NaN
  return std::bit_cast<float>((magnitude >= 0x0F800000 ? special : scaled) | sign);
}
inline float widened(pidcomm_bfloat16 half) {
  return std::bit_cast<float>(uint32_t{half.bits} << 16);
}

/// Return a float rounded to nearest, ties to even.
inline void narrow(float value, pidcomm_float16 &half) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7FFFFFFF;
  uint32_t rounded;
  if (magnitude > 0x7F800000)  // NaN
    rounded = 0x7E00;
  else if (magnitude >= 0x47800000)  // 2^16 and more
    rounded = 0x7C00;
  else if (magnitude < 0x38800000)  // subnormal: the sum with 0.5 has the bits below its fraction
    rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000;
  else
    rounded = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  half.bits = static_cast<uint16_t>((bits >> 16 & 0x8000) | rounded);
}
inline void narrow(float value, pidcomm_bfloat16 &half) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  half.bits =
      static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace pidcomm
