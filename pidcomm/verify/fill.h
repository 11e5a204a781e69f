/// Payloads that reveal every wrong route of data and every wrong identity element. The same seed
/// gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verify {

/// Kinds of payloads.
enum class Fill {
  /// Every 8-byte word of every row has a unique bit pattern (a bijection of seed, row and word
  /// index). Use it for data movement, and for
  /// integer sums, xor, minima and maxima.
  kDistinct,
  /// Values whose reductions are exact in every order, for up to 8192 rows. Integers keep the
  /// result sensitive to every input: factors of
  /// prod are odd, bits are mostly 1 for `and` and mostly 0 for `or`. Floats are small integers;
  /// for prod they are +-1, and a limited
  /// number of factors 2 and 0.5.
  kExact,
  /// For floats: NaN, infinities, signed zeros and denormals, chosen for each element so that the
  /// result is the same in any order. Columns
  /// that contain only -0 reveal a wrong identity element. For integers, this fill is the same as
  /// kExact.
  kSpecial,
  /// For floats: values of very different magnitude, so that another order of additions changes
  /// bits of the result. Use it for bitwise
  /// comparison with the documented order. For integers, this fill is the same as kExact.
  kRounding,
};

/// Returns the fill for a collective: kDistinct for data movement (takes_op is false) and for
/// integers; kExact for floats, and for integer operators whose results kDistinct would make
/// constant.
Fill fill_for(bool takes_op, int type, int op);

/// Fills rows with elements of `type` for reductions with `op`; kDistinct ignores both. Row i
/// starts at byte i * row_bytes, and row_bytes is a multiple of the element size. Throws
/// std::invalid_argument for unknown codes and for sizes that do not divide into rows.
void fill(Fill kind, int type, int op, std::uint64_t seed, std::size_t row_bytes,
          std::span<std::uint8_t> rows);

/// Fills any bytes with kDistinct; the size does not have to be a multiple of 8.
void fill_distinct(std::uint64_t seed, std::size_t row_bytes, std::span<std::uint8_t> rows);

/// A bijection of 64-bit words whose results look random (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace verify
