// Floats of 16 bits for the oracle, by the definition of their format.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace verify {

/// A float with a sign, kExponentBits bits of exponent and kFractionBits bits of fraction.
template <int kExponentBits, int kFractionBits>
class SmallFloat {
 public:
  SmallFloat() = default;

  /// Rounds to the nearest value, ties to even.
  explicit SmallFloat(float value) : bits_(std::signbit(value) ? kSign : 0) {
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) {
      bits_ |= kInfinity | kQuiet;
    } else if (std::isinf(value)) {
      bits_ |= kInfinity;
    } else if (magnitude != 0) {
      // The last bit of the result is worth 2^quantum, and `units` counts it. The sum with the bits
      // of the exponent lets a carry increment the exponent, at most to that of infinity.
      const int exponent = std::max(std::ilogb(magnitude), kLeastExponent);
      const int quantum = exponent - kFractionBits;
      const double units = std::nearbyint(std::ldexp(double{magnitude}, -quantum));
      const long bits = ((exponent - kLeastExponent) * (1L << kFractionBits)) + std::lround(units);
      bits_ |= static_cast<std::uint16_t>(std::min<long>(bits, kInfinity));
    }
  }

  explicit operator float() const {
    const int exponent = (bits_ & kInfinity) >> kFractionBits, fraction = bits_ & kFraction;
    const float sign = (bits_ & kSign) != 0 ? -1.0f : 1.0f;
    if (exponent == kInfinity >> kFractionBits)
      return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                           : std::numeric_limits<float>::quiet_NaN();
    const int units = fraction + (exponent == 0 ? 0 : 1 << kFractionBits);
    return static_cast<float>(std::ldexp(
        double{sign} * units, std::max(exponent, 1) - 1 + kLeastExponent - kFractionBits));
  }

  /// Returns the smallest positive value.
  static constexpr float least() {
    float value = 1;
    for (int exponent = 0; exponent > kLeastExponent - kFractionBits; --exponent) value /= 2;
    return value;
  }

 private:
  static constexpr int kLeastExponent = 2 - (1 << (kExponentBits - 1));  // of a normal value
  static constexpr std::uint16_t kSign = 0x8000, kFraction = (1 << kFractionBits) - 1,
                                 kInfinity = 0x7FFF & ~kFraction, kQuiet = (kFraction + 1) / 2;
  std::uint16_t bits_ = 0;
};

using Float16 = SmallFloat<5, 10>;
using BFloat16 = SmallFloat<8, 7>;

template <class T>
inline constexpr bool kIsSmallFloat = false;
template <int kExponentBits, int kFractionBits>
inline constexpr bool kIsSmallFloat<SmallFloat<kExponentBits, kFractionBits>> = true;

/// The smallest positive value.
template <class T>
inline constexpr T kDenormMin = std::numeric_limits<T>::denorm_min();
template <int kExponentBits, int kFractionBits>
inline constexpr float kDenormMin<SmallFloat<kExponentBits, kFractionBits>> =
    SmallFloat<kExponentBits, kFractionBits>::least();

/// Whether T is a floating-point type; the type in which operators on T compute.
template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsSmallFloat<T>;
template <class T>
using Computed = std::conditional_t<kIsSmallFloat<T>, float, T>;

}  // namespace verify
