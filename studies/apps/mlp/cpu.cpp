/// Computes one layer on the CPUs: y = W relu(x). All threads share the rows. W is read once, at
/// memory bandwidth.
#include "../cpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace pidcomm_apps;

/// Returns the sum of a[i] * b[i] modulo 2^bits of T. Sum: an unsigned type, at least as wide as T,
/// that vector instructions multiply.
template <class Sum, class T>
[[gnu::always_inline]] inline T dot_of(const T *a, const T *b, size_t count) {
  using Unsigned = std::make_unsigned_t<T>;
  Sum sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < count; ++i)
    sum += static_cast<Sum>(1u * static_cast<Unsigned>(a[i]) * static_cast<Unsigned>(b[i]));
  return static_cast<T>(sum);
}

// These functions are not templates, so that each can be compiled for several CPUs.
PIDCOMM_APPS_WIDEST_VECTORS int8_t dot(const int8_t *a, const int8_t *b, size_t count) {
  return dot_of<uint16_t>(a, b, count);
}
PIDCOMM_APPS_WIDEST_VECTORS int16_t dot(const int16_t *a, const int16_t *b, size_t count) {
  return dot_of<uint16_t>(a, b, count);
}
PIDCOMM_APPS_WIDEST_VECTORS int32_t dot(const int32_t *a, const int32_t *b, size_t count) {
  return dot_of<uint32_t>(a, b, count);
}
PIDCOMM_APPS_WIDEST_VECTORS int64_t dot(const int64_t *a, const int64_t *b, size_t count) {
  return dot_of<uint64_t>(a, b, count);
}

template <class T>
Out<T> layer(In2<T> weights, In<T> x, bool relu) {
  const size_t rows = weights.shape(0), columns = weights.shape(1);
  if (x.shape(0) != columns)
    throw nb::value_error("x must have an element for every column of the weights");
  Owned<T> y(rows);
  {
    const nb::gil_scoped_release released;
    std::vector<T> input(x.data(), x.data() + columns);
    if (relu)
      for (T &value : input) value = std::max(value, T(0));
    const T *const w = weights.data();
    T *const out = y.data();
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; ++row)
      out[row] = dot(w + row * columns, input.data(), columns);
  }
  return y.array(rows);
}

template <class T>
void add_layer(nb::module_ &module) {
  module.def("mlp_layer", &layer<T>, nb::arg("weights").noconvert(), nb::arg("x").noconvert(),
             nb::arg("relu"));
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  add_layer<int8_t>(module);
  add_layer<int16_t>(module);
  add_layer<int32_t>(module);
  add_layer<int64_t>(module);
}
