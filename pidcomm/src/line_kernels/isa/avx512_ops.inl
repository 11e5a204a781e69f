// Line primitives of AVX-512BW. A line is one register. The structs of avx512bw.cpp and
// avx512vbmi.cpp add `transpose`.
typedef LineOf<64> Line;

struct Avx512Ops {
  static constexpr bool kHasInstances = PIDCOMM_PASS_INSTANCES;
  static constexpr bool kHasUnprefetchedVisits = false;
  static bool is_supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }

  static __m512i reg(Line x) { return (__m512i)x.part[0]; }
  static Line line(__m512i reg) { return {{(Line::Part)reg}}; }

  static Line load_line(const std::byte *from) { return line(_mm512_load_si512(from)); }
  static void store_line(std::byte *to, Line x) {
    _mm512_stream_si512(reinterpret_cast<__m512i *>(to), reg(x));
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

  template <int Bit>
  static void butterfly(Line &a, Line &b) {
    const __m512i control = _mm512_loadu_si512(&kLaneXor<Bit>);
    const __m512i old_a = reg(a);
    a = line(_mm512_mask_shuffle_epi8(old_a, high_lanes<Bit>(), reg(b), control));
    b = line(_mm512_mask_shuffle_epi8(reg(b), ~high_lanes<Bit>(), old_a, control));
  }

  /// Shuffles with two inputs and a separate output take fewer instructions than those that
  /// overwrite an input (permutex2var, or Bit 1), because these also take a copy of the input.
  template <int Bit>
  static void butterfly_words(Line &a, Line &b) {
    const __m512i old_a = reg(a), old_b = reg(b);
    if constexpr (Bit == 0) {
      a = line(_mm512_unpacklo_epi64(old_a, old_b));
      b = line(_mm512_unpackhi_epi64(old_a, old_b));
    } else if constexpr (Bit == 1) {
      a = line(_mm512_mask_permutex_epi64(old_a, 0xCC, old_b, 0x44));
      b = line(_mm512_mask_permutex_epi64(old_b, 0x33, old_a, 0xEE));
    } else {
      a = line(_mm512_shuffle_i64x2(old_a, old_b, 0x44));
      b = line(_mm512_shuffle_i64x2(old_a, old_b, 0xEE));
    }
  }

  /// Needs one shuffle; butterfly_words needs two.
  template <int Bit>
  static void pair_words(Line &a, Line &b) {
    constexpr __mmask8 kHigh = Bit == 0 ? 0xAA : Bit == 1 ? 0xCC : 0xF0;
    const __m512i own = _mm512_mask_blend_epi64(kHigh, reg(a), reg(b)),
                  other = _mm512_mask_blend_epi64(kHigh, reg(b), reg(a));
    a = line(own);
    if constexpr (Bit == 0) b = line(_mm512_shuffle_epi32(other, _MM_PERM_BADC));
    if constexpr (Bit == 1) b = line(_mm512_shuffle_i64x2(other, other, 0xB1));
    if constexpr (Bit == 2) b = line(_mm512_shuffle_i64x2(other, other, 0x4E));
  }

  template <int Bit>
  static Line swap_lanes(Line x) {
    return line(_mm512_shuffle_epi8(reg(x), _mm512_loadu_si512(&kLaneXor<Bit>)));
  }

  static Line swap_words(Line x, int bit) {
    const __m512i identity = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    return line(
        _mm512_permutexvar_epi64(_mm512_xor_si512(identity, _mm512_set1_epi64(1 << bit)), reg(x)));
  }

  static __m512i lane_control(uint64_t map) {
    const __m512i high = _mm512_setr_epi64(0, 0x0808080808080808, 0, 0x0808080808080808, 0,
                                           0x0808080808080808, 0, 0x0808080808080808);
    return _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(map)), high);
  }
  static Line shuffle_lanes(Line x, __m512i control) {
    return line(_mm512_shuffle_epi8(reg(x), control));
  }

  typedef Line::Floats Floats;
  template <bool High>
  static Floats widen(Line::Part halves) {
    return (Floats)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)halves, High ? 1 : 0));
  }
  static Line::Part narrow(Floats low, Floats high) {
    const auto halves = [](Floats floats) {
      return _mm512_cvtps_ph((__m512)floats, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    };
    return (Line::Part)_mm512_inserti64x4(_mm512_castsi256_si512(halves(low)), halves(high), 1);
  }

  static __m512i word_control(uint64_t map) {
    return _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<long long>(map)));
  }
  static Line shuffle_words(Line x, __m512i control) {
    return line(_mm512_permutexvar_epi64(control, reg(x)));
  }

 private:
  /// A mask with one bit per byte of a line: selects the bytes of the lanes in whose number bit Bit
  /// is set.
  template <int Bit>
  static constexpr __mmask64 high_lanes() {
    return Bit == 0 ? 0xAAAAAAAAAAAAAAAAu : Bit == 1 ? 0xCCCCCCCCCCCCCCCCu : 0xF0F0F0F0F0F0F0F0u;
  }
};
