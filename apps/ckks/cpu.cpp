/// Primitives of a homomorphic multiplication on the CPUs, besides the transforms in apps/ntt/cpu.cpp. Arrays have a row per limb.
#include "../cpu.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace pidcomm_apps;
using Wide = unsigned __int128;

void require(bool holds, const char *rule) {
  if (!holds) throw nb::value_error(rule);
}

/// Returns for every target t the sum of y_i factors[t, i] modulo targets[t], y_i being x_i weights[i] modulo sources[i].
Out2<uint64_t> convert(In2<uint64_t> x, In<uint64_t> weights, In<uint64_t> sources, In2<uint64_t> factors, In<uint64_t> targets) {
  const size_t from = x.shape(0), n = x.shape(1), to = targets.shape(0);
  require(weights.shape(0) == from && sources.shape(0) == from && factors.shape(0) == to && factors.shape(1) == from,
          "there must be a weight and a modulus for every source, and factors (targets, sources)");
  Owned<uint64_t> made(to * n);
  {
    const gil::Released released;
    uint64_t *const out = made.data();
#pragma omp parallel
    {
      std::vector<uint64_t> y(from);
#pragma omp for schedule(static)
      for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < from; ++i)
          y[i] = static_cast<uint64_t>(static_cast<Wide>(x.data()[i * n + k]) * weights.data()[i] % sources.data()[i]);
        for (size_t t = 0; t < to; ++t) {
          Wide sum = 0;
          for (size_t i = 0; i < from; ++i) sum += static_cast<Wide>(y[i]) * factors.data()[t * from + i];
          out[t * n + k] = static_cast<uint64_t>(sum % targets.data()[t]);
        }
      }
    }
  }
  return made.array(to, n);
}

/// Returns a weights[limb] + b modulo moduli[limb].
Out2<uint64_t> multiply_add(In2<uint64_t> a, In<uint64_t> weights, In2<uint64_t> b, In<uint64_t> moduli) {
  const size_t limbs = a.shape(0), n = a.shape(1);
  require(b.shape(0) == limbs && b.shape(1) == n && weights.shape(0) == limbs && moduli.shape(0) == limbs,
          "shapes must be equal, with a weight and a modulus for every limb");
  Owned<uint64_t> made(limbs * n);
  {
    const gil::Released released;
    uint64_t *const out = made.data();
#pragma omp parallel for collapse(2) schedule(static)
    for (size_t limb = 0; limb < limbs; ++limb)
      for (size_t k = 0; k < n; ++k)
        out[limb * n + k] = static_cast<uint64_t>(
            (static_cast<Wide>(a.data()[limb * n + k]) * weights.data()[limb] + b.data()[limb * n + k]) % moduli.data()[limb]);
  }
  return made.array(limbs, n);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("ckks_convert", &convert, nb::arg("x"), nb::arg("weights"), nb::arg("sources"), nb::arg("factors"), nb::arg("targets"));
  module.def("ckks_multiply_add", &multiply_add, nb::arg("a"), nb::arg("weights"), nb::arg("b"), nb::arg("moduli"));
}
