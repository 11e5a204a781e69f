/// Primitives of a homomorphic multiplication on the CPUs, besides the transforms in
/// apps/ntt/cpu.cpp. Arrays have a row per limb.
#include "../ntt/cpu.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace pidcomm_apps;
/// Returns for every target t the sum of y_i factors[t, i] modulo targets[t], y_i being x_i
/// weights[i] modulo sources[i].
Out2<uint64_t> convert(In2<uint64_t> x, In<uint64_t> weights, In<uint64_t> sources,
                       In2<uint64_t> factors, In<uint64_t> targets, bool has_one_lane) {
  const size_t from = x.shape(0), n = x.shape(1), to = targets.shape(0);
  require(weights.shape(0) == from && sources.shape(0) == from && factors.shape(0) == to &&
              factors.shape(1) == from,
          "there must be a weight and a modulus for every source, and factors (targets, sources)");
  const size_t piece = std::min(n, kPiece), pieces = n / piece;
  require(n % piece == 0, "the number of coefficients must be a power of two");
  Owned<uint64_t> result(to * n);
  {
    const nb::gil_scoped_release released;
    uint64_t *const out = result.data();
    std::vector<Factor> first, second;
    for (size_t i = 0; i < from; ++i)
      first.push_back(factor_of(weights.data()[i], sources.data()[i]));
    for (size_t i = 0; i < to * from; ++i)
      second.push_back(factor_of(factors.data()[i], targets.data()[i / from]));
    const uint64_t largest = std::max(*std::max_element(sources.data(), sources.data() + from),
                                      *std::max_element(targets.data(), targets.data() + to));
    const Functions &act = functions(largest, piece, has_one_lane);
#pragma omp parallel
    {
      std::vector<uint64_t> y(from * piece);
#pragma omp for schedule(static)
      for (size_t part = 0; part < pieces; ++part) {
        for (size_t i = 0; i < from; ++i)
          act.weigh(x.data() + i * n + part * piece, n, 1, y.data() + i * piece, piece, &first[i],
                    sources.data()[i]);
        for (size_t t = 0; t < to; ++t)
          act.weigh(y.data(), piece, from, out + t * n + part * piece, piece, &second[t * from],
                    targets.data()[t]);
      }
    }
  }
  return result.array(to, n);
}

/// Returns (a - b) weights[limb] modulo moduli[limb].
Out2<uint64_t> scale(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> weights, In<uint64_t> moduli,
                     bool has_one_lane) {
  require(weights.shape(0) == a.shape(0) && moduli.shape(0) == a.shape(0),
          "there must be a weight and a modulus for every limb");
  return each_pair(
      a, b, [&](size_t limb, const uint64_t *x, const uint64_t *y, uint64_t *out, size_t count) {
        const uint64_t q = moduli.data()[limb];
        functions(q, count, has_one_lane)
            .scale(x, y, out, count, factor_of(weights.data()[limb], q), q);
      });
}

PIDCOMM_APPS_WIDEST_VECTORS void add_piece(const uint64_t *a, const uint64_t *b, uint64_t *out,
                                           size_t count, uint64_t q) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = a[i] + b[i];
    out[i] = std::min(value, value - q);
  }
}

/// Returns a + b modulo moduli[limb].
Out2<uint64_t> sum(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> moduli) {
  require(moduli.shape(0) == a.shape(0), "there must be a modulus for every limb");
  return each_pair(
      a, b, [&](size_t limb, const uint64_t *x, const uint64_t *y, uint64_t *out, size_t count) {
        add_piece(x, y, out, count, moduli.data()[limb]);
      });
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("ckks_convert", &convert, nb::arg("x"), nb::arg("weights"), nb::arg("sources"),
             nb::arg("factors"), nb::arg("targets"), nb::arg("has_one_lane") = false);
  module.def("ckks_scale", &scale, nb::arg("a"), nb::arg("b"), nb::arg("weights"),
             nb::arg("moduli"), nb::arg("has_one_lane") = false);
  module.def("ckks_add", &sum, nb::arg("a"), nb::arg("b"), nb::arg("moduli"));
}
