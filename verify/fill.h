/// Payloads that make every misroute and every wrong identity visible. Deterministic: the same seed gives the same bytes everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verify {

/// Kinds of payloads.
enum class Fill {
  /// Every 8-byte word of every row has a unique bit pattern (a bijection of seed, row and word index). For movement, and for
  /// integer sums, xor, minima and maxima.
  kDistinct,
  /// For reductions whose result must not depend on the order: integers of every width keep the information (odd factors for prod,
  /// mostly ones for and, mostly zeros for or), floats are small integers or, for prod, +-1, 2 and 0.5 in bounded number, so that
  /// every partial result is exact. Exact for up to 8192 rows.
  kExact,
  /// Floats only: NaN, infinities, signed zeros and denormals, chosen per element so that the result is still the same in any order
  /// (whole columns of -0 show a wrong identity). Same as kExact for integers.
  kSpecial,
  /// Floats only: values of very different magnitude, so that another order of additions changes bits. For bitwise comparison with
  /// the documented order. Same as kExact for integers.
  kRounding,
};

/// The fill for a collective: kDistinct for movement (takes_op false) and for integers, kExact for floats and for the integer
/// operators whose results would degenerate.
Fill fill_for(bool takes_op, int type, int op);

/// Fills rows of `row_bytes` bytes (multiples of the element size; row i at i * row_bytes) for elements of `type` to be combined with
/// `op` (both ignored by kDistinct). Throws std::invalid_argument for unknown codes and ragged sizes.
void fill(Fill kind, int type, int op, std::uint64_t seed, std::size_t row_bytes, std::span<std::uint8_t> rows);

/// kDistinct for anything, also sizes that are no multiple of 8.
void fill_distinct(std::uint64_t seed, std::size_t row_bytes, std::span<std::uint8_t> rows);

/// A bijection of 64-bit words that leaves no pattern (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace verify
