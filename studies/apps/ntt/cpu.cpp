/// Number-theoretic transforms on the CPUs: tables of twiddles, transforms forward and back,
/// products element by element.
///
/// Arrays have a row per limb. Row i of a table has N pairs (w, floor(w 2^64 / q)): entry 2^s + j
/// is the factor of node j at level s of the tree of x^N + 1, and entry 0 is the modulus
/// (apps/pe/modular.h). Results of forward transforms are in the order of the tree's leaves:
/// element i is the polynomial at psi^(2 r + 1), r being i with its log2(N) bits reversed.
///
/// Source: D. Harvey, Faster arithmetic for number-theoretic transforms, J. Symbolic Computation 60
/// (2014).
#include "cpu.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace pidcomm_apps;
size_t reversed(size_t i, int bits) {
  size_t found = 0;
  for (int bit = 0; bit < bits; ++bit) found |= (i >> bit & 1) << (bits - 1 - bit);
  return found;
}

int log_of(size_t n) {
  require(n >= 2 && std::has_single_bit(n),
          "the number of coefficients must be a power of two, at least 2");
  return std::countr_zero(n);
}

/// roots[i]: a primitive 2N-th root of unity modulo moduli[i]; for inverse transforms, its inverse.
Out2<uint64_t> tables(In<uint64_t> moduli, In<uint64_t> roots, size_t n) {
  const int bits = log_of(n);
  const size_t limbs = moduli.shape(0);
  require(roots.shape(0) == limbs, "there must be a root for every modulus");
  for (size_t limb = 0; limb < limbs; ++limb)
    require(moduli.data()[limb] > 2 && moduli.data()[limb] >> 62 == 0,
            "moduli must be from 3 to 2^62");
  Owned<uint64_t> made(2 * limbs * n);
  {
    const nb::gil_scoped_release released;
#pragma omp parallel for schedule(dynamic)
    for (size_t limb = 0; limb < limbs; ++limb) {
      const uint64_t q = moduli.data()[limb], root = roots.data()[limb] % q;
      uint64_t *const row = made.data() + 2 * limb * n;
      uint64_t power = 1;
      for (size_t i = 0; i < n;
           ++i, power = static_cast<uint64_t>(static_cast<Wide>(power) * root % q)) {
        const size_t at = reversed(i, bits);
        row[2 * at] = power;
        row[2 * at + 1] = factor_of(power, q).quotient;
      }
      const int shift = std::countl_zero(q);
      row[0] = q;
      row[1] = static_cast<uint64_t>((static_cast<Wide>(1) << (128 - 2 * shift)) / q);
    }
  }
  return made.array(limbs, 2 * n);
}

constexpr int kTopLevels =
    4;  // levels that a thread computes for some columns; then each thread computes subtrees

/// One level of butterflies on columns first to last - 1 of each node: a value is below 4 q before
/// and after.
template <bool kInverse>
void level(uint64_t *x, size_t nodes, size_t length, const Factor *factors, size_t first,
           size_t last, uint64_t q) {
  const size_t half = length / 2;
  for (size_t node = 0; node < nodes; ++node, x += length) {
    const Factor w = factors[node];
    for (size_t i = first; i < last; ++i) {
      uint64_t a = x[i], b = x[i + half];
      if constexpr (kInverse) {  // a value is below 2 q
        const uint64_t sum = a + b;
        x[i] = sum >= 2 * q ? sum - 2 * q : sum;
        x[i + half] = times(a + 2 * q - b, w, q);
      } else {
        a = a >= 2 * q ? a - 2 * q : a;
        b = times(b, w, q);
        x[i] = a + b;
        x[i + half] = a + 2 * q - b;
      }
    }
  }
}

/// The levels below node `node` at level `top`, one after the other.
template <bool kInverse>
void subtree(uint64_t *x, size_t length, const Factor *table, int top, size_t node, uint64_t q) {
  const int levels = std::countr_zero(length);
  for (int turn = 0; turn < levels; ++turn) {
    const int s = kInverse ? levels - 1 - turn : turn;
    const size_t here = length >> s;
    level<kInverse>(x, size_t{1} << s, here, table + (size_t{1} << (top + s)) + (node << s), 0,
                    here / 2, q);
  }
}

/// The first levels, on some columns of length N >> top.
template <bool kInverse>
void columns(uint64_t *x, size_t n, const Factor *table, int top, size_t part, size_t parts,
             uint64_t q) {
  const size_t width = n >> top, first = width * part / parts, last = width * (part + 1) / parts;
  for (int turn = 0; turn < top; ++turn) {
    const int s = kInverse ? top - 1 - turn : turn;
    const size_t nodes = size_t{1} << s, half = n >> (s + 1);
    for (size_t from = 0; from < half; from += width)
      level<kInverse>(x, nodes, 2 * half, table + nodes, from + first, from + last, q);
  }
}

/// scales: (w, quotient) of each limb, by which an inverse transform multiplies.
template <bool kInverse>
Out2<uint64_t> transform(In2<uint64_t> values, In2<uint64_t> tables, In2<uint64_t> scales) {
  const size_t limbs = values.shape(0), n = values.shape(1);
  const int bits = log_of(n), top = std::min(kTopLevels, bits - 1);
  require(tables.shape(0) == limbs && tables.shape(1) == 2 * n,
          "there must be a table of N pairs for every limb");
  require(!kInverse || (scales.shape(0) == limbs && scales.shape(1) == 2),
          "there must be a scale for every limb");
  Owned<uint64_t> made(limbs * n);
  {
    const nb::gil_scoped_release released;
    const size_t parts = size_t{1} << top, all = limbs * parts;
    uint64_t *const out = made.data();
    std::copy(values.data(), values.data() + limbs * n, out);
    const auto table_of = [&](size_t limb) {
      return reinterpret_cast<const Factor *>(tables.data()) + limb * n;
    };
    const auto do_columns = [&](size_t work) {
      const size_t limb = work / parts;
      columns<kInverse>(out + limb * n, n, table_of(limb), top, work % parts, parts,
                        table_of(limb)->value);
    };
    const auto do_subtree = [&](size_t work) {
      const size_t limb = work / parts, node = work % parts;
      subtree<kInverse>(out + limb * n + node * (n >> top), n >> top, table_of(limb), top, node,
                        table_of(limb)->value);
    };
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (size_t work = 0; work < all; ++work) kInverse ? do_subtree(work) : do_columns(work);
#pragma omp for schedule(static)
      for (size_t work = 0; work < all; ++work) kInverse ? do_columns(work) : do_subtree(work);
#pragma omp for schedule(static)
      for (size_t work = 0; work < all; ++work) {
        const size_t limb = work / parts;
        const uint64_t q = table_of(limb)->value;
        uint64_t *const part = out + limb * n + work % parts * (n >> top);
        const Factor scale =
            kInverse ? reinterpret_cast<const Factor *>(scales.data())[limb] : Factor{};
        for (size_t i = 0; i < n >> top; ++i) {
          uint64_t value = kInverse ? times(part[i], scale, q) : part[i];
          value = value >= 2 * q ? value - 2 * q : value;
          part[i] = value >= q ? value - q : value;
        }
      }
    }
  }
  return made.array(limbs, n);
}

Out2<uint64_t> forward(In2<uint64_t> values, In2<uint64_t> tables) {
  return transform<false>(values, tables, tables);
}

Out2<uint64_t> multiply(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> moduli) {
  require(moduli.shape(0) == a.shape(0), "there must be a modulus for every limb");
  return each_pair(a, b, [&](size_t limb) {
    return [q = Modulus(moduli.data()[limb])](uint64_t x, uint64_t y) {
      return q.reduced(static_cast<Wide>(x) * y);
    };
  });
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("ntt_tables", &tables, nb::arg("moduli"), nb::arg("roots"), nb::arg("n"));
  module.def("ntt_forward", &forward, nb::arg("values"), nb::arg("tables"));
  module.def("ntt_inverse", &transform<true>, nb::arg("values"), nb::arg("tables"),
             nb::arg("scales"));
  module.def("ntt_multiply", &multiply, nb::arg("a"), nb::arg("b"), nb::arg("moduli"));
}
