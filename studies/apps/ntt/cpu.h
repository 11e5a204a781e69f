/// Arithmetic modulo primes on the CPUs, for the CPU references of transforms and homomorphic
/// multiplications.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../cpu.h"

namespace pidcomm_apps {

using Wide = unsigned __int128;

/// A factor w and floor(w 2^64 / q).
struct Factor {
  uint64_t value, quotient;
};

inline Factor factor_of(uint64_t w, uint64_t q) {
  return {w, static_cast<uint64_t>((static_cast<Wide>(w) << 64) / q)};
}

/// Returns a value below 2 q that is congruent to a w, for any a.
inline uint64_t times(uint64_t a, const Factor &w, uint64_t q) {
  return a * w.value - static_cast<uint64_t>((static_cast<Wide>(a) * w.quotient) >> 64) * q;
}

/// A modulus q < 2^62 with the factors that reduce a wide value.
class Modulus {
 public:
  explicit Modulus(uint64_t q)
      : q_(q), one_(factor_of(1, q)), upper_(factor_of((uint64_t{1} << kLowBits) % q, q)) {}

  /// Returns value modulo q, for value < 2^(64 + 56).
  uint64_t reduced(Wide value) const {
    const uint64_t low = static_cast<uint64_t>(value) & ((uint64_t{1} << kLowBits) - 1),
                   high = static_cast<uint64_t>(value >> kLowBits);
    uint64_t found = times(high, upper_, q_) + times(low, one_, q_);
    found = found >= 2 * q_ ? found - 2 * q_ : found;
    return found >= q_ ? found - q_ : found;
  }
  uint64_t value() const { return q_; }

 private:
  static constexpr int kLowBits = 56;
  uint64_t q_;
  Factor one_, upper_;
};

inline void require(bool holds, const char *rule) {
  if (!holds) throw nb::value_error(rule);
}

/// Returns rows of of_limb(limb)(a[limb, i], b[limb, i]).
template <class OfLimb>
Out2<uint64_t> each_pair(const In2<uint64_t> &a, const In2<uint64_t> &b, const OfLimb &of_limb) {
  const size_t limbs = a.shape(0), n = a.shape(1);
  require(b.shape(0) == limbs && b.shape(1) == n, "the shapes of the two arrays must be equal");
  Owned<uint64_t> made(limbs * n);
  {
    const nb::gil_scoped_release released;
    uint64_t *const out = made.data();
#pragma omp parallel
    for (size_t limb = 0; limb < limbs; ++limb) {
      const auto value_of = of_limb(limb);
      const uint64_t *const x = a.data() + limb * n, *const y = b.data() + limb * n;
#pragma omp for schedule(static) nowait
      for (size_t i = 0; i < n; ++i) out[limb * n + i] = value_of(x[i], y[i]);
    }
  }
  return made.array(limbs, n);
}

}  // namespace pidcomm_apps
