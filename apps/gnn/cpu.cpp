/// A layer of a graph neural network without PEs.
#include "cpu.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace nb = nanobind;
using namespace pidcomm_apps;

namespace {

constexpr size_t kRows = 4;          // that use a row of weights while it is in a register or the nearest cache
constexpr size_t kWidth = 64;        // columns whose sums of kRows rows stay near, too
constexpr size_t kRowsPerTurn = 16;  // of a thread; in rounds of them, since degrees differ

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

template <class T>
FOR_EACH_CPU void add_row(T *sum, const T *row, size_t count, bool is_rectified) {
  using S = std::make_signed_t<T>;
  if (is_rectified) {
    for (size_t i = 0; i < count; i++) sum[i] += S(row[i]) > 0 ? row[i] : T(0);
  } else {
    for (size_t i = 0; i < count; i++) sum[i] += row[i];
  }
}

/// out[rows][columns] = in[rows][depth] * weights[depth][columns], at most kRows rows.
template <class T>
FOR_EACH_CPU void multiply(const T *in, size_t rows, size_t depth, const T *weights, size_t columns, T *out) {
  for (size_t first = 0; first < columns; first += kWidth) {
    const size_t width = std::min(kWidth, columns - first);
    T sums[kRows][kWidth] = {};
    for (size_t k = 0; k < depth; k++) {
      const T *const factors = weights + k * columns + first;
      for (size_t r = 0; r < rows; r++) {
        const uint32_t value = in[r * depth + k];  // 32 bits: products of 16 would be signed ints that overflow
        if (width == kWidth) {
          for (size_t i = 0; i < kWidth; i++) sums[r][i] += T(value * factors[i]);
        } else {
          for (size_t i = 0; i < width; i++) sums[r][i] += T(value * factors[i]);
        }
      }
    }
    for (size_t r = 0; r < rows; r++) std::copy_n(sums[r], width, out + r * columns + first);
  }
}

/// Returns A * H * W: row v of A has ones at targets[starts[v]] to targets[starts[v + 1] - 1]. H is rectified first if asked for.
template <class Signed>
Out2<Signed> layer(In<int64_t> starts, In<uint32_t> targets, In2<Signed> features, In2<Signed> weights, bool is_rectified) {
  using T = std::make_unsigned_t<Signed>;  // which wraps
  const size_t vertices = features.shape(0), depth = features.shape(1), columns = weights.shape(1);
  const T *const in = reinterpret_cast<const T *>(features.data()), *const factors = reinterpret_cast<const T *>(weights.data());
  Owned<Signed> result(vertices * columns);
  T *const out = reinterpret_cast<T *>(result.data());
  {
    nb::gil_scoped_release released;
#pragma omp parallel
    {
      std::vector<T> sums(kRows * depth);
#pragma omp for schedule(dynamic, kRowsPerTurn / kRows)
      for (size_t turn = 0; turn < (vertices + kRows - 1) / kRows; turn++) {
        const size_t first = turn * kRows, rows = std::min(kRows, vertices - first);
        std::fill(sums.begin(), sums.end(), T(0));
        for (size_t r = 0; r < rows; r++)
          for (int64_t i = starts.data()[first + r]; i < starts.data()[first + r + 1]; i++)
            add_row(&sums[r * depth], in + targets.data()[i] * depth, depth, is_rectified);
        multiply(sums.data(), rows, depth, factors, columns, out + first * columns);
      }
    }
  }
  return result.array(vertices, columns);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("gnn_layer", &layer<int8_t>);
  module.def("gnn_layer", &layer<int16_t>);
  module.def("gnn_layer", &layer<int32_t>);
}
