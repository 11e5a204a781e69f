// avx2: a line is in two registers.
#include <immintrin.h>

#include "base/bits.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "line_kernels/line.h"

namespace pidcomm {
namespace {

typedef LineOf<32> Line;

struct Isa {
  static constexpr bool kHasInstances = PIDCOMM_PASS_INSTANCES;
  static constexpr bool kHasUnprefetchedVisits = false;
  static bool is_supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("clflushopt");
  }

  struct Halves {
    __m256i low, high;
  };
  static Halves halves(Line line) { return {(__m256i)line.part[0], (__m256i)line.part[1]}; }
  static Line join(__m256i low, __m256i high) { return {{(Line::Part)low, (Line::Part)high}}; }
  template <int Bit>
  static __m256i lane_xor() {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(&kLaneXor<Bit>));
  }

  static Line load_line(const std::byte *from) {
    const __m256i *const half = reinterpret_cast<const __m256i *>(from);
    return join(_mm256_load_si256(half), _mm256_load_si256(half + 1));
  }
  static void store_line(std::byte *to, Line line) {
    const Halves h = halves(line);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to), h.low);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to) + 1, h.high);
  }
  static void store_words_non_temporal(std::byte *to, Line words) { store_line(to, words); }
  static void flush_line(const std::byte *line) { _mm_clflushopt(const_cast<std::byte *>(line)); }
  static void prefetch_line(const std::byte *line) {
    _mm_prefetch(reinterpret_cast<const char *>(line), _MM_HINT_T0);
    keep_calls();
  }
  static void prefetch_far(const std::byte *line) {
    _mm_prefetch(reinterpret_cast<const char *>(line), _MM_HINT_T1);
    keep_calls();
  }
  static void fence() { _mm_mfence(); }

  template <bool High>
  static Line::Floats widen(Line::Part halves) {
    return (Line::Floats)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)halves, High ? 1 : 0));
  }
  static Line::Part narrow(Line::Floats low, Line::Floats high) {
    const auto rounded = [](Line::Floats floats) {
      return _mm256_cvtps_ph((__m256)floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    return (Line::Part)_mm256_set_m128i(rounded(high), rounded(low));
  }

  /// Interleaves pairs of beats, then interleaves pairs of the interleaved pairs, and puts the two
  /// quarters of each result side by side.
  static Line transpose(Line line) {
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const __m256i words = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const Halves h = halves(line);
    const __m256i a = _mm256_shuffle_epi8(h.low, pairs), b = _mm256_shuffle_epi8(h.high, pairs);
    const __m256i even = _mm256_permute2x128_si256(a, b, 0x20),
                  odd = _mm256_permute2x128_si256(a, b, 0x31);
    return join(_mm256_permutevar8x32_epi32(_mm256_unpacklo_epi16(even, odd), words),
                _mm256_permutevar8x32_epi32(_mm256_unpackhi_epi16(even, odd), words));
  }

  /// Takes the lanes in whose number the bit is 0 from `low`, and the lanes in whose number the bit
  /// is 1 from `high`.
  template <int Bit>
  static __m256i by_lane(__m256i low, __m256i high) {
    if constexpr (Bit == 0)
      return _mm256_blendv_epi8(low, high,
                                _mm256_set1_epi64x(static_cast<long long>(lanes_with(0))));
    if constexpr (Bit == 1) return _mm256_blend_epi16(low, high, 0xAA);
    return _mm256_blend_epi32(low, high, 0xAA);
  }

  template <int Bit>
  static void butterfly(Line &a, Line &b) {
    const auto up = [](__m256i x) { return _mm256_slli_epi64(x, 8 << Bit); };
    const auto down = [](__m256i x) { return _mm256_srli_epi64(x, 8 << Bit); };
    const Halves x = halves(a), y = halves(b);
    a = join(by_lane<Bit>(x.low, up(y.low)), by_lane<Bit>(x.high, up(y.high)));
    b = join(by_lane<Bit>(down(x.low), y.low), by_lane<Bit>(down(x.high), y.high));
  }

  template <int Bit>
  static void butterfly_words(Line &a, Line &b) {
    const Halves x = halves(a), y = halves(b);
    if constexpr (Bit == 0) {
      a = join(_mm256_unpacklo_epi64(x.low, y.low), _mm256_unpacklo_epi64(x.high, y.high));
      b = join(_mm256_unpackhi_epi64(x.low, y.low), _mm256_unpackhi_epi64(x.high, y.high));
    } else if constexpr (Bit == 1) {
      a = join(_mm256_permute2x128_si256(x.low, y.low, 0x20),
               _mm256_permute2x128_si256(x.high, y.high, 0x20));
      b = join(_mm256_permute2x128_si256(x.low, y.low, 0x31),
               _mm256_permute2x128_si256(x.high, y.high, 0x31));
    } else {
      a = join(x.low, y.low);
      b = join(x.high, y.high);
    }
  }

  template <int Bit>
  static void pair_words(Line &a, Line &b) {
    butterfly_words<Bit>(a, b);
  }

  template <int Bit>
  static Line swap_lanes(Line line) {
    const Halves h = halves(line);
    return join(_mm256_shuffle_epi8(h.low, lane_xor<Bit>()),
                _mm256_shuffle_epi8(h.high, lane_xor<Bit>()));
  }

  static Line swap_words(Line line, int bit) {
    const Halves h = halves(line);
    switch (bit) {
      case 0:
        return join(_mm256_permute4x64_epi64(h.low, 0xB1), _mm256_permute4x64_epi64(h.high, 0xB1));
      case 1:
        return join(_mm256_permute4x64_epi64(h.low, 0x4E), _mm256_permute4x64_epi64(h.high, 0x4E));
      default:
        return join(h.high, h.low);
    }
  }

  static __m256i lane_control(uint64_t map) {
    const long long low = static_cast<long long>(map),
                    high = static_cast<long long>(map + 0x0808080808080808u);
    return _mm256_setr_epi64x(low, high, low, high);
  }
  static Line shuffle_lanes(Line line, __m256i control) {
    const Halves h = halves(line);
    return join(_mm256_shuffle_epi8(h.low, control), _mm256_shuffle_epi8(h.high, control));
  }

  /// For each register of the result: indices of the two 32-bit halves of every word, and whether
  /// the word comes from the high register.
  struct WordControl {
    __m256i halves[2], from_high[2];
  };
  static WordControl word_control(uint64_t map) {
    WordControl control;
    for (int i = 0; i < 2; ++i) {
      const __m256i word = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(static_cast<int>(map >> 32 * i)));
      const __m256i first = _mm256_slli_epi64(_mm256_and_si256(word, _mm256_set1_epi64x(3)), 1);
      control.halves[i] = _mm256_or_si256(
          first, _mm256_slli_epi64(_mm256_or_si256(first, _mm256_set1_epi64x(1)), 32));
      control.from_high[i] = _mm256_cmpgt_epi64(word, _mm256_set1_epi64x(3));
    }
    return control;
  }
  static Line shuffle_words(Line line, const WordControl &control) {
    const Halves h = halves(line);
    const auto half = [&](int i) {
      return _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(h.low, control.halves[i]),
                                _mm256_permutevar8x32_epi32(h.high, control.halves[i]),
                                control.from_high[i]);
    };
    return join(half(0), half(1));
  }
};

#include "line_kernels/passes.inl"

}  // namespace

PIDCOMM_REDUCERS(AVX2)
PIDCOMM_KERNELS(AVX2, "avx2", AVX2)

}  // namespace pidcomm
