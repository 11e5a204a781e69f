/// The operators of the oracle: those of tables.h on two elements, and those of pidcomm/operators.h
/// on the elements of all members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace verify {

/// Computes left[i] = left[i] op right[i].
using Combine = void (*)(std::uint8_t *left, const std::uint8_t *right, std::size_t bytes);
Combine combine_of(int op, int type);

/// An element of each of 1 to N members, in member order.
using Elements = std::span<const std::uint8_t *const>;

/// An operator that replaces the operator of a Problem.
struct Fold {
  std::size_t element_bytes = 0;
  /// Stores the reduction of the elements in `out`.
  std::function<void(std::uint8_t *out, Elements members)> reduce;
  std::vector<std::uint8_t> identity;  ///< the element of member 0 of exscan
  /// If not null, a reduction (no scan) first combines all members with the operator of the
  /// Problem, in the order of the oracle, and then replaces each result by finish(result, N).
  std::function<void(std::uint8_t *element, std::size_t members)> finish = nullptr;
};

/// An operator of PIDCOMM_OPS, from left to right.
Fold fold_of_op(int op, int type);
/// The exact sum of integers, divided by N, rounded to nearest, ties to even. Floats: as
/// scaled_sum, but the sum is divided by N.
Fold average(int type);
/// The sum of floats, times the factor in float64, rounded to the type. 16-bit floats are added in
/// float32, in member order; their product is rounded to float32, then to the type.
Fold scaled_sum(int type, double factor);
/// The smallest (largest) value with its index, which is uint32_t at byte 4, or uint64_t at byte 8
/// for types of 8 bytes. Of equal values the smallest index wins; NaN comes before all numbers.
Fold place(int type, bool is_max);

}  // namespace verify
