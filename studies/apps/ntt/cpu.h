/// Arithmetic modulo primes on the CPUs, for the CPU references of transforms and homomorphic
/// multiplications.
#pragma once

#include <algorithm>
#include <bit>
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

/// A modulus q < 2^62 and floor(2^(128 - 2s) / q), s being its leading zeros.
inline Factor barrett_of(uint64_t q) {
  return {q, static_cast<uint64_t>((static_cast<Wide>(1) << (128 - 2 * std::countl_zero(q))) / q)};
}

/// The functions of levels.h for a set of lanes, and the number of lanes. Index 1 of columns,
/// subtree and finish is the inverse transform.
struct Functions {
  void (*columns[2])(uint64_t *x, size_t n, const Factor *table, int top, size_t part, size_t parts,
                     uint64_t q);
  void (*subtree[2])(uint64_t *x, size_t length, const Factor *table, int top, size_t node,
                     uint64_t q);
  void (*finish[2])(uint64_t *x, size_t count, Factor scale, uint64_t q);
  void (*multiply)(const uint64_t *a, const uint64_t *b, uint64_t *out, size_t count,
                   Factor barrett);
  void (*scale)(const uint64_t *a, const uint64_t *b, uint64_t *out, size_t count, Factor factor,
                uint64_t q);
  void (*weigh)(const uint64_t *y, size_t row, size_t rows, uint64_t *out, size_t count,
                const Factor *factors, uint64_t q);
  size_t lanes;
};

/// Returns the functions for moduli up to `largest`, for the most lanes of this CPU that divide
/// `count` elements, or for one lane.
const Functions &functions(uint64_t largest, size_t count, bool has_one_lane);

inline void require(bool holds, const char *rule) {
  if (!holds) throw nb::value_error(rule);
}

constexpr size_t kPiece = 2048;  // elements that a thread does at a time

/// Returns rows that act(limb, a, b, out, count) fills, a piece at a time.
template <class Act>
Out2<uint64_t> each_pair(const In2<uint64_t> &a, const In2<uint64_t> &b, const Act &act) {
  const size_t limbs = a.shape(0), n = a.shape(1), piece = std::min(n, kPiece), pieces = n / piece;
  require(b.shape(0) == limbs && b.shape(1) == n, "the shapes of the two arrays must be equal");
  require(n % piece == 0, "the number of coefficients must be a power of two");
  Owned<uint64_t> result(limbs * n);
  {
    const nb::gil_scoped_release released;
    uint64_t *const out = result.data();
#pragma omp parallel for schedule(static)
    for (size_t work = 0; work < limbs * pieces; ++work) {
      const size_t at = work * piece;
      act(work / pieces, a.data() + at, b.data() + at, out + at, piece);
    }
  }
  return result.array(limbs, n);
}

}  // namespace pidcomm_apps
