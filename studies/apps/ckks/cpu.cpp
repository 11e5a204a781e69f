/// Primitives of a homomorphic multiplication on the CPUs, besides the transforms in
/// apps/ntt/cpu.cpp. Arrays have a row per limb.
#include "../ntt/cpu.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace pidcomm_apps;
/// Returns for every target t the sum of y_i factors[t, i] modulo targets[t], y_i being x_i
/// weights[i] modulo sources[i].
Out2<uint64_t> convert(In2<uint64_t> x, In<uint64_t> weights, In<uint64_t> sources,
                       In2<uint64_t> factors, In<uint64_t> targets) {
  const size_t from = x.shape(0), n = x.shape(1), to = targets.shape(0);
  require(weights.shape(0) == from && sources.shape(0) == from && factors.shape(0) == to &&
              factors.shape(1) == from,
          "there must be a weight and a modulus for every source, and factors (targets, sources)");
  Owned<uint64_t> made(to * n);
  {
    const nb::gil_scoped_release released;
    uint64_t *const out = made.data();
    std::vector<Factor> first;
    for (size_t i = 0; i < from; ++i)
      first.push_back(factor_of(weights.data()[i], sources.data()[i]));
    const std::vector<Modulus> moduli(targets.data(), targets.data() + to);
#pragma omp parallel
    {
      std::vector<uint64_t> y(from);
#pragma omp for schedule(static)
      for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < from; ++i) {
          const uint64_t q = sources.data()[i], value = times(x.data()[i * n + k], first[i], q);
          y[i] = value >= q ? value - q : value;
        }
        for (size_t t = 0; t < to; ++t) {
          Wide sum = 0;
          for (size_t i = 0; i < from; ++i)
            sum += static_cast<Wide>(y[i]) * factors.data()[t * from + i];
          out[t * n + k] = moduli[t].reduced(sum);
        }
      }
    }
  }
  return made.array(to, n);
}

/// Returns (a - b) weights[limb] modulo moduli[limb].
Out2<uint64_t> scale(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> weights, In<uint64_t> moduli) {
  require(weights.shape(0) == a.shape(0) && moduli.shape(0) == a.shape(0),
          "there must be a weight and a modulus for every limb");
  return each_pair(a, b, [&](size_t limb) {
    const uint64_t q = moduli.data()[limb];
    return [q, w = factor_of(weights.data()[limb], q)](uint64_t x, uint64_t y) {
      const uint64_t value = times(x + q - y, w, q);
      return value >= q ? value - q : value;
    };
  });
}

/// Returns a + b modulo moduli[limb].
Out2<uint64_t> sum(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> moduli) {
  require(moduli.shape(0) == a.shape(0), "there must be a modulus for every limb");
  return each_pair(a, b, [&](size_t limb) {
    return [q = moduli.data()[limb]](uint64_t x, uint64_t y) {
      const uint64_t value = x + y;
      return value >= q ? value - q : value;
    };
  });
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("ckks_convert", &convert, nb::arg("x"), nb::arg("weights"), nb::arg("sources"),
             nb::arg("factors"), nb::arg("targets"));
  module.def("ckks_scale", &scale, nb::arg("a"), nb::arg("b"), nb::arg("weights"),
             nb::arg("moduli"));
  module.def("ckks_add", &sum, nb::arg("a"), nb::arg("b"), nb::arg("moduli"));
}
