/// Computes a layer of a graph neural network on the CPUs.
#include "cpu.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace nb = nanobind;
using namespace pidcomm_apps;

namespace {

constexpr size_t kRows =
    8;  // rows of the product that are computed together; their sums stay in registers
constexpr size_t kVectorBytes = 64;

template <class T>
[[gnu::always_inline]] inline void add_row_of(T *sum, const T *row, size_t count,
                                              bool is_rectified) {
  using S = std::make_signed_t<T>;
  if (is_rectified) {
    for (size_t i = 0; i < count; i++) sum[i] += S(row[i]) > 0 ? row[i] : T(0);
  } else {
    for (size_t i = 0; i < count; i++) sum[i] += row[i];
  }
}

/// out[kRows][columns] = in[kRows][depth] * weights, with weights in vectors of columns: [column /
/// lanes][depth][lanes].
template <class T>
[[gnu::always_inline]] inline void multiply_of(const T *in, size_t depth, const T *weights,
                                               size_t columns, T *out) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  constexpr size_t kLanes = kVectorBytes / sizeof(T);
  for (size_t first = 0; first < columns; first += kLanes) {
    Vector sums[kRows] = {};
    for (size_t k = 0; k < depth; k++, weights += kLanes) {
      Vector factors;
      std::memcpy(&factors, weights, sizeof factors);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; r++) sums[r] += in[r * depth + k] * factors;
    }
    for (size_t r = 0; r < kRows; r++)
      std::memcpy(out + r * columns + first, &sums[r], sizeof sums[r]);
  }
}

#define FOR_EACH_CPU(T)                                                                  \
  PIDCOMM_APPS_WIDEST_VECTORS void add_row(T *sum, const T *row, size_t count,           \
                                           bool is_rectified) {                          \
    add_row_of(sum, row, count, is_rectified);                                           \
  }                                                                                      \
  PIDCOMM_APPS_WIDEST_VECTORS void multiply(const T *in, size_t depth, const T *weights, \
                                            size_t columns, T *out) {                    \
    multiply_of(in, depth, weights, columns, out);                                       \
  }
FOR_EACH_CPU(uint8_t)
FOR_EACH_CPU(uint16_t)
FOR_EACH_CPU(uint32_t)

/// Raises ValueError if `layer` would read beyond its arrays.
void check(In<int64_t> starts, In<uint32_t> targets, size_t vertices, size_t depth,
           size_t weight_rows) {
  if (starts.shape(0) != vertices + 1)
    throw nb::value_error("starts must have an element for every row of features, and one more");
  const int64_t *const first = starts.data(), *const last = first + vertices;
  if (*first != 0 || !std::is_sorted(first, last + 1) ||
      *last != static_cast<int64_t>(targets.shape(0)))
    throw nb::value_error("starts must ascend from 0 to the number of targets");
  const uint32_t *const end = targets.data() + targets.shape(0);
  if (std::any_of(targets.data(), end, [=](uint32_t target) { return target >= vertices; }))
    throw nb::value_error("targets must be rows of features");
  if (depth != weight_rows)
    throw nb::value_error("weights must have a row for every column of features");
}

/// Returns the number of columns, padded for `multiply`.
template <class T>
size_t padded(size_t columns) {
  constexpr size_t kLanes = kVectorBytes / sizeof(T);
  return (columns + kLanes - 1) / kLanes * kLanes;
}

/// Returns a matrix in the layout of `multiply`, with zeros in the padding.
template <class T>
std::vector<T> in_vectors(const T *matrix, size_t rows, size_t columns) {
  constexpr size_t kLanes = kVectorBytes / sizeof(T);
  std::vector<T> vectors(padded<T>(columns) * rows);
  for (size_t row = 0; row < rows; row++)
    for (size_t column = 0; column < columns; column++)
      vectors[(column / kLanes * rows + row) * kLanes + column % kLanes] =
          matrix[row * columns + column];
  return vectors;
}

/// Returns A * H * W: row v of A has ones in columns targets[starts[v]] to targets[starts[v + 1] -
/// 1]. is_rectified: replaces H by max(H, 0).
template <class Signed>
Out2<Signed> layer(In<int64_t> starts, In<uint32_t> targets, In2<Signed> features,
                   In2<Signed> weights, bool is_rectified) {
  using T = std::make_unsigned_t<Signed>;  // unsigned arithmetic wraps
  const size_t vertices = features.shape(0), depth = features.shape(1), columns = weights.shape(1);
  check(starts, targets, vertices, depth, weights.shape(0));
  const T *const in = reinterpret_cast<const T *>(features.data());
  Owned<Signed> result(vertices * columns);
  T *const out = reinterpret_cast<T *>(result.data());
  {
    const nb::gil_scoped_release released;
    const std::vector<T> vectors =
        in_vectors(reinterpret_cast<const T *>(weights.data()), depth, columns);
    const size_t width = padded<T>(columns);
#pragma omp parallel
    {
      std::vector<T> sums(kRows * depth), products(kRows * width);
#pragma omp for schedule(dynamic, 8)
      for (size_t first = 0; first < vertices; first += kRows) {
        const size_t rows = std::min(kRows, vertices - first);
        std::fill(sums.begin(), sums.end(), T(0));
        for (size_t r = 0; r < rows; r++)
          for (int64_t i = starts.data()[first + r]; i < starts.data()[first + r + 1]; i++)
            add_row(sums.data() + r * depth, in + targets.data()[i] * depth, depth, is_rectified);
        multiply(sums.data(), depth, vectors.data(), width, products.data());
        for (size_t r = 0; r < rows; r++)
          std::copy_n(products.data() + r * width, columns, out + (first + r) * columns);
      }
    }
  }
  return result.array(vertices, columns);
}

template <class Signed>
void add_layer(nb::module_ &module) {
  module.def("gnn_layer", &layer<Signed>, nb::arg("starts").noconvert(),
             nb::arg("targets").noconvert(), nb::arg("features").noconvert(),
             nb::arg("weights").noconvert(), nb::arg("is_rectified"));
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  add_layer<int8_t>(module);
  add_layer<int16_t>(module);
  add_layer<int32_t>(module);
}
