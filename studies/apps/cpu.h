/// Shared code of the CPU references of the applications. Each adds its functions to one common
/// Python extension.
///
/// A file apps/NAME/cpu.cpp contains once:
///
///   PIDCOMM_APPS_ADD(module) { module.def("NAME", &function); }
///
/// Arguments and results are ndarrays of nanobind. The functions release the GIL and use OpenMP.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

namespace pidcomm_apps {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Out2 = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;

/// Memory that becomes a NumPy array without a copy.
template <class T>
class Owned {
 public:
  explicit Owned(size_t count) : values_(new T[count]()) {}
  T *data() { return values_.get(); }
  T &operator[](size_t i) { return values_[i]; }
  /// Transfers ownership to Python. Requires the GIL; rows * columns must equal the count.
  Out<T> array(size_t count) {
    T *const values = data();
    return Out<T>(values, {count}, owner());
  }
  Out2<T> array(size_t rows, size_t columns) {
    T *const values = data();
    return Out2<T>(values, {rows, columns}, owner());
  }

 private:
  nb::capsule owner() {
    return nb::capsule(values_.release(),
                       [](void *values) noexcept { delete[] static_cast<T *>(values); });
  }
  std::unique_ptr<T[]> values_;
};

/// The functions that one file adds to the extension.
struct Part {
  explicit Part(void (*add)(nb::module_ &));
};

}  // namespace pidcomm_apps

/// Compiles the function after it for several vector widths; the loader chooses the widest that the
/// CPU supports. Not for templates.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PIDCOMM_APPS_WIDEST_VECTORS \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PIDCOMM_APPS_WIDEST_VECTORS
#endif

#define PIDCOMM_APPS_ADD(module)              \
  static void add(nanobind::module_ &module); \
  static const pidcomm_apps::Part kPart(add); \
  static void add(nanobind::module_ &module)
