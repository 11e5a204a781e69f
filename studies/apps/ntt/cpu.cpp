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

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define PIDCOMM_APPS_AVX512
#endif

namespace {

using namespace pidcomm_apps;
size_t reversed(size_t i, int bits) {
  size_t result = 0;
  for (int bit = 0; bit < bits; ++bit) result |= (i >> bit & 1) << (bits - 1 - bit);
  return result;
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
  Owned<uint64_t> result(2 * limbs * n);
  {
    const nb::gil_scoped_release released;
#pragma omp parallel for schedule(dynamic)
    for (size_t limb = 0; limb < limbs; ++limb) {
      const uint64_t q = moduli.data()[limb], root = roots.data()[limb] % q;
      uint64_t *const row = result.data() + 2 * limb * n;
      uint64_t power = 1;
      for (size_t i = 0; i < n;
           ++i, power = static_cast<uint64_t>(static_cast<Wide>(power) * root % q)) {
        const size_t at = reversed(i, bits);
        row[2 * at] = power;
        row[2 * at + 1] = factor_of(power, q).quotient;
      }
      row[0] = q;
      row[1] = barrett_of(q).quotient;
    }
  }
  return result.array(limbs, 2 * n);
}

constexpr int kTopLevels =
    4;  // levels that a thread computes for some columns; then each thread computes subtrees

namespace scalar {
struct One {
  using V = uint64_t;
  static constexpr size_t kLanes = 1;
  static constexpr uint64_t kBound = 2;
  static V all(uint64_t value) { return value; }
  static V load(const uint64_t *from) { return *from; }
  static void store(uint64_t *to, V value) { *to = value; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V reduced(V a, V limit) { return a >= limit ? a - limit : a; }
  static uint64_t quotient(uint64_t value) { return value; }
  static V times(V a, V w, V quotient, V q) { return pidcomm_apps::times(a, {w, quotient}, q); }
  static V product(V a, V b, V q, V quotient, int shift) {
    const Wide high = static_cast<Wide>(a << shift) * (b << shift) >> 64;
    return a * b - static_cast<uint64_t>(high * quotient >> 64) * q;
  }
};
#include "levels.h"
}  // namespace scalar

#ifdef PIDCOMM_APPS_AVX512
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC's own headers
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq")
namespace avx512 {
struct Eight {
  using V = __m512i;
  static constexpr size_t kLanes = 8;
  static V all(uint64_t value) { return _mm512_set1_epi64(static_cast<long long>(value)); }
  static V load(const uint64_t *from) { return _mm512_loadu_si512(from); }
  static void store(uint64_t *to, V value) { _mm512_storeu_si512(to, value); }
  static V add(V a, V b) { return _mm512_add_epi64(a, b); }
  static V sub(V a, V b) { return _mm512_sub_epi64(a, b); }
  static V reduced(V a, V limit) { return _mm512_min_epu64(a, sub(a, limit)); }
  static V lane() { return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0); }
  /// Lane i: (i / half) * scale + i % half * more + offset; half: 1, 2 or 4.
  static V index(size_t half, long long scale, long long more, long long offset) {
    const V rest = _mm512_and_si512(lane(), all(half - 1));
    const V block = _mm512_srlv_epi64(lane(), all(static_cast<uint64_t>(std::countr_zero(half))));
    return add(add(_mm512_mullo_epi64(block, all(static_cast<uint64_t>(scale))),
                   _mm512_mullo_epi64(rest, all(static_cast<uint64_t>(more)))),
               all(static_cast<uint64_t>(offset)));
  }
  static V low(V a, V b, size_t half) {
    return _mm512_permutex2var_epi64(a, index(half, 2 * static_cast<long long>(half), 1, 0), b);
  }
  static V high(V a, V b, size_t half) {
    const auto h = static_cast<long long>(half);
    return _mm512_permutex2var_epi64(a, index(half, 2 * h, 1, h), b);
  }
  /// Element i of the two vectors is lane i % half of block i / (2 half), of b if i / half is odd.
  static V merged(V a, V b, size_t half, uint64_t from) {
    const V i = add(lane(), all(from)), log = all(static_cast<uint64_t>(std::countr_zero(half)));
    const V block = _mm512_srlv_epi64(i, log), rest = _mm512_and_si512(i, all(half - 1));
    const V is_b = _mm512_slli_epi64(_mm512_and_si512(block, all(1)), 3);
    const V at = _mm512_sllv_epi64(_mm512_srli_epi64(block, 1), log);
    return _mm512_permutex2var_epi64(a, add(add(at, rest), is_b), b);
  }
  static V first(V a, V b, size_t half) { return merged(a, b, half, 0); }
  static V second(V a, V b, size_t half) { return merged(a, b, half, kLanes); }
  static V value_of(V p0, V p1, size_t half) {
    return _mm512_permutex2var_epi64(p0, index(half, 2, 0, 0), p1);
  }
};

/// For q < 2^54: the upper half of a product lacks the carry, which is at most 2.
struct Residues54 : Eight {
  static constexpr uint64_t kBound = 4;
  static uint64_t quotient(uint64_t value) { return value; }
  static V quotient_of(V p0, V p1, size_t half) {
    return _mm512_permutex2var_epi64(p0, index(half, 2, 0, 1), p1);
  }
  static V high_product(V a, V b) {
    const V a1 = _mm512_srli_epi64(a, 32), b1 = _mm512_srli_epi64(b, 32);
    const V middle = add(_mm512_srli_epi64(_mm512_mul_epu32(a1, b), 32),
                         _mm512_srli_epi64(_mm512_mul_epu32(a, b1), 32));
    return add(_mm512_mul_epu32(a1, b1), middle);
  }
  static V times(V a, V w, V quotient, V q) {
    return sub(_mm512_mullo_epi64(a, w), _mm512_mullo_epi64(high_product(a, quotient), q));
  }
  static V product(V a, V b, V q, V quotient, int shift) {
    const V by = all(static_cast<uint64_t>(shift));
    const V high = high_product(_mm512_sllv_epi64(a, by), _mm512_sllv_epi64(b, by));
    return sub(_mm512_mullo_epi64(a, b), _mm512_mullo_epi64(high_product(high, quotient), q));
  }
};

/// For q < 2^30: products of 32-bit factors.
struct Residues30 : Eight {
  static constexpr uint64_t kBound = 2;
  static uint64_t quotient(uint64_t value) { return value >> 32; }
  static V quotient_of(V p0, V p1, size_t half) {
    return _mm512_srli_epi64(Residues54::quotient_of(p0, p1, half), 32);
  }
  static V times(V a, V w, V quotient, V q) {
    const V high = _mm512_srli_epi64(_mm512_mul_epu32(a, quotient), 32);
    return sub(_mm512_mul_epu32(a, w), _mm512_mul_epu32(high, q));
  }
  static V product(V a, V b, V q, V quotient, int shift) {
    const V by = all(static_cast<uint64_t>(shift - 32));
    const V high =
        _mm512_srli_epi64(_mm512_mul_epu32(_mm512_sllv_epi64(a, by), _mm512_sllv_epi64(b, by)), 32);
    return sub(_mm512_mul_epu32(a, b),
               _mm512_mul_epu32(_mm512_srli_epi64(_mm512_mul_epu32(high, quotient), 32), q));
  }
};
#include "levels.h"
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif

}  // namespace

const Functions &pidcomm_apps::functions(uint64_t largest, size_t count, bool has_one_lane) {
  static constexpr Functions kScalar = scalar::functions_of<scalar::One>();
#ifdef PIDCOMM_APPS_AVX512
  static constexpr Functions k54 = avx512::functions_of<avx512::Residues54>(),
                             k30 = avx512::functions_of<avx512::Residues30>();
  static const bool has_vectors =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  if (has_vectors && !has_one_lane && count > 0 && count % k54.lanes == 0 && largest >> 54 == 0)
    return largest >> 30 == 0 ? k30 : k54;
#else
  (void)largest, (void)count, (void)has_one_lane;
#endif
  return kScalar;
}

namespace {

/// scales: (w, quotient) of each limb, by which an inverse transform multiplies.
template <bool kInverse>
Out2<uint64_t> transform(In2<uint64_t> values, In2<uint64_t> tables, In2<uint64_t> scales,
                         bool has_one_lane) {
  const size_t limbs = values.shape(0), n = values.shape(1);
  const int bits = log_of(n), top = std::min(kTopLevels, bits - 1);
  require(tables.shape(0) == limbs && tables.shape(1) == 2 * n,
          "there must be a table of N pairs for every limb");
  require(!kInverse || (scales.shape(0) == limbs && scales.shape(1) == 2),
          "there must be a scale for every limb");
  Owned<uint64_t> result(limbs * n);
  {
    const nb::gil_scoped_release released;
    const size_t parts = size_t{1} << top, all = limbs * parts;
    uint64_t *const out = result.data();
    std::copy(values.data(), values.data() + limbs * n, out);
    const auto table_of = [&](size_t limb) {
      return reinterpret_cast<const Factor *>(tables.data()) + limb * n;
    };
    uint64_t largest = 0;
    for (size_t limb = 0; limb < limbs; ++limb) largest = std::max(largest, table_of(limb)->value);
    const Functions &act = functions(largest, (n >> top) / parts, has_one_lane);
    const auto do_columns = [&](size_t work) {
      const size_t limb = work / parts;
      act.columns[kInverse](out + limb * n, n, table_of(limb), top, work % parts, parts,
                            table_of(limb)->value);
    };
    const auto do_subtree = [&](size_t work) {
      const size_t limb = work / parts, node = work % parts;
      act.subtree[kInverse](out + limb * n + node * (n >> top), n >> top, table_of(limb), top, node,
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
        act.finish[kInverse](
            out + limb * n + work % parts * (n >> top), n >> top,
            kInverse ? reinterpret_cast<const Factor *>(scales.data())[limb] : Factor{},
            table_of(limb)->value);
      }
    }
  }
  return result.array(limbs, n);
}

Out2<uint64_t> forward(In2<uint64_t> values, In2<uint64_t> tables, bool has_one_lane) {
  return transform<false>(values, tables, tables, has_one_lane);
}

Out2<uint64_t> multiply(In2<uint64_t> a, In2<uint64_t> b, In<uint64_t> moduli, bool has_one_lane) {
  require(moduli.shape(0) == a.shape(0), "there must be a modulus for every limb");
  return each_pair(
      a, b, [&](size_t limb, const uint64_t *x, const uint64_t *y, uint64_t *out, size_t count) {
        const uint64_t q = moduli.data()[limb];
        functions(q, count, has_one_lane).multiply(x, y, out, count, barrett_of(q));
      });
}

/// Returns the lanes of transforms of n coefficients for moduli up to `largest`.
size_t lanes_of(uint64_t largest, size_t n) {
  const int top = std::min(kTopLevels, log_of(n) - 1);
  return functions(largest, n >> 2 * top, false).lanes;
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  module.def("ntt_tables", &tables, nb::arg("moduli"), nb::arg("roots"), nb::arg("n"));
  module.def("ntt_forward", &forward, nb::arg("values"), nb::arg("tables"),
             nb::arg("has_one_lane") = false);
  module.def("ntt_inverse", &transform<true>, nb::arg("values"), nb::arg("tables"),
             nb::arg("scales"), nb::arg("has_one_lane") = false);
  module.def("ntt_multiply", &multiply, nb::arg("a"), nb::arg("b"), nb::arg("moduli"),
             nb::arg("has_one_lane") = false);
  module.def("ntt_lanes", &lanes_of, nb::arg("largest"), nb::arg("n"));
}
