#include "fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "oracle.h"
#include "parallel.h"
#include "small_float.h"

namespace verify {
namespace {

/// The hash of one element (or word) of one row. With the same seed, hashes are distinct for
/// distinct pairs (row, index) below 2^32.
std::uint64_t hash(std::uint64_t seed, std::size_t row, std::size_t index) {
  return mix(mix(seed) ^ (static_cast<std::uint64_t>(row) << 32 | index));
}

/// The hash of a column: element `index` of every row has this hash.
std::uint64_t column_hash(std::uint64_t seed, std::size_t index) { return mix(~mix(seed) + index); }

/// The position of an element in the payload.
struct Place {
  std::uint64_t seed;
  std::size_t row, rows, index;
  std::uint64_t random() const { return hash(seed, row, index); }
  std::uint64_t column() const { return column_hash(seed, index); }
};

/// Returns bits that are 1 with a probability of about 1 / rows, so that an `or` of all rows has
/// bits of both values.
std::uint64_t sparse_bits(const Place &place) {
  std::uint64_t bits = place.random();
  for (std::size_t rows = place.rows, salt = 1; rows > 2; rows /= 2, ++salt)
    bits &= mix(place.random() + salt);
  return bits;
}

template <class T>
T integer(const Place &place, int op) {
  if (op == kPROD)
    return static_cast<T>(place.random() | 1);  // a product of odd factors is never 0
  if (op == kOR) return static_cast<T>(sparse_bits(place));
  if (op == kAND) return static_cast<T>(~sparse_bits(place));
  return static_cast<T>(place.random());
}

/// Whether the element has the neutral value of an operator. At most `most` rows of a column have
/// other values; these rows depend on the column.
bool is_neutral(const Place &place, std::size_t most) {
  return (place.row + place.column()) % ((place.rows + most - 1) / most) != 0;
}

/// Sums of up to 8192 such values fit into the 24 bits of a float's significand, and for floats of
/// 16 bits, at most 96 values are not 0. Products have at most 96 (12) factors of 2 or 0.5.
template <class T>
T exact_float(const Place &place, int op) {
  constexpr bool kIsSmall = kIsSmallFloat<T>;
  const std::uint64_t random = place.random();
  const float sign = random & 1 ? -1.0f : 1.0f;
  if (op == kPROD)
    return T(is_neutral(place, kIsSmall ? 12 : 96) ? sign : sign * (random & 2 ? 2.0f : 0.5f));
  if (kIsSmall && op == kSUM) return T(is_neutral(place, 96) ? 0.0f : sign);
  constexpr int kMost = kIsSmall ? 127 : 2047;
  return T(static_cast<float>(static_cast<int>(random % (2 * kMost + 1)) - kMost));
}

/// Each column has special values of one kind, whose result is the same in every order.
template <class T>
T special_float(const Place &place, int op) {
  using Limits = std::numeric_limits<Computed<T>>;
  const Computed<T> sign = place.random() & 1 ? -1 : 1;
  const std::uint64_t pick = place.random() >> 8;
  switch (place.column() % 6) {
    case 0:  // -0 in every row: the identity element of a sum is -0, not +0
      return T(-0.0f);
    case 1:  // zeros of both signs
      return T(sign * 0);
    case 2:  // one NaN among finite values
      return place.row == (place.column() >> 8) % place.rows ? T(Limits::quiet_NaN())
                                                             : exact_float<T>(place, op);
    case 3:  // infinities of one sign, or of both, among finite values
      return pick % 4 == 0 ? T((place.column() & 64 ? 1 : sign) * Limits::infinity())
                           : exact_float<T>(place, op);
    case 4:  // denormals; for products, one denormal and factors +-1
      if (op == kPROD && place.row != (place.column() >> 8) % place.rows) return T(sign);
      if (kIsSmallFloat<T>) return T(is_neutral(place, 96) ? 0 : sign * kDenormMin<T>);
      return T(sign * static_cast<Computed<T>>(1 + pick % 1000) * kDenormMin<T>);
    default:  // products of infinities and zeros, or minima and maxima of extreme values
      return T(pick % 2 ? sign * Limits::infinity() : (op == kSUM ? -0.0f : sign * 0));
  }
}

template <class T>
T rounding_float(const Place &place, int op) {
  using Value = Computed<T>;
  const std::uint64_t random = place.random();
  const Value unit = static_cast<Value>(random >> 11) / static_cast<Value>(std::uint64_t{1} << 53);
  constexpr int kMostExponent = kIsSmallFloat<T> ? 5 : 20;
  const int exponent =
      op == kPROD ? 0 : static_cast<int>(random % (2 * kMostExponent + 1)) - kMostExponent;
  return T(std::ldexp(1 + unit, exponent) * (random & 64 ? -1 : 1) *
           (op == kPROD ? Value(0.6875) : 1));
}

template <class T>
T element(Fill kind, const Place &place, int op) {
  if constexpr (kIsFloat<T>) {
    if (kind == Fill::kSpecial) return special_float<T>(place, op);
    if (kind == Fill::kRounding) return rounding_float<T>(place, op);
    return exact_float<T>(place, op);
  } else {
    return integer<T>(place, op);
  }
}

template <class T>
void fill_row(Fill kind, int op, Place place, std::uint8_t *row, std::size_t row_bytes) {
  for (place.index = 0; place.index < row_bytes / sizeof(T); ++place.index) {
    const T value = element<T>(kind, place, op);
    std::memcpy(row + place.index * sizeof(T), &value, sizeof(T));
  }
}

std::size_t rows_in(std::size_t row_bytes, std::span<const std::uint8_t> rows) {
  if (rows.empty()) return 0;
  if (row_bytes == 0 || rows.size() % row_bytes != 0)
    throw std::invalid_argument("verify: " + std::to_string(rows.size()) +
                                " bytes do not divide into rows of " + std::to_string(row_bytes));
  return rows.size() / row_bytes;
}

}  // namespace

Fill fill_for(bool takes_op, int type, int op) {
  return takes_op && (is_float(type) || op == kPROD || op == kAND || op == kOR) ? Fill::kExact
                                                                                : Fill::kDistinct;
}

void fill_distinct(std::uint64_t seed, std::size_t row_bytes, std::span<std::uint8_t> rows) {
  parallel_for(rows_in(row_bytes, rows), rows.size(), [&](std::size_t row) {
    for (std::size_t at = 0; at < row_bytes; at += 8) {
      const std::uint64_t word = hash(seed, row, at / 8);
      std::memcpy(rows.data() + row * row_bytes + at, &word,
                  std::min<std::size_t>(8, row_bytes - at));
    }
  });
}

void fill(Fill kind, int type, int op, std::uint64_t seed, std::size_t row_bytes,
          std::span<std::uint8_t> rows) {
  if (kind == Fill::kDistinct) return fill_distinct(seed, row_bytes, rows);
  if (!is_defined(op, type) || row_bytes % element_bytes(type) != 0)
    throw std::invalid_argument("verify: no payload of type " + std::to_string(type) +
                                " for operator " + std::to_string(op) + " in rows of " +
                                std::to_string(row_bytes) + " bytes");
  const std::size_t count = rows_in(row_bytes, rows);
  parallel_for(count, rows.size(), [&](std::size_t row) {
    const Place place{seed, row, count, 0};
    std::uint8_t *data = rows.data() + row * row_bytes;
    using pidcomm_float16 = Float16;
    using pidcomm_bfloat16 = BFloat16;
    switch (type) {
#define VERIFY_ROW(ENUM, code, name, T, ...) \
  case code:                                 \
    return fill_row<T>(kind, op, place, data, row_bytes);
      PIDCOMM_TYPES(VERIFY_ROW)
#undef VERIFY_ROW
      case 1:
        return fill_row<std::uint8_t>(kind, op, place, data, row_bytes);
      case 2:
        return fill_row<std::uint16_t>(kind, op, place, data, row_bytes);
      case 4:
        return fill_row<std::uint32_t>(kind, op, place, data, row_bytes);
      case 8:
        return fill_row<std::uint64_t>(kind, op, place, data, row_bytes);
    }
  });
}

}  // namespace verify
