// AVX2: registers hold the words 0 1 | 2 3 of a chip, or half a line. A step writes 4 words. A step
// reads 8 words, so that streaming stores write 64 bytes of a chip before they write bytes of the
// next chip.
#include <immintrin.h>

#include <cstring>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

constexpr uint32_t kWordsPerStep = 8;
constexpr uint32_t kWordsPerWrite = 4;
constexpr uint32_t kHostPrefetchBytes = 512;
constexpr uint64_t kLinePrefetchBytes = 4096;

inline __m256i *as_vector(uint8_t *bytes) { return reinterpret_cast<__m256i *>(bytes); }
inline const __m256i *as_vector(const uint8_t *bytes) {
  return reinterpret_cast<const __m256i *>(bytes);
}

inline __m256i bytes_of_lanes(uint8_t lanes) {
  // Each byte tests the bit of its lane in the replicated lane set.
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_set1_epi8(static_cast<char>(lanes)), bit), bit);
}

inline void store_half_line(uint8_t *half_line, __m256i value, __m256i bytes, bool is_whole) {
  if (!is_whole) value = _mm256_blendv_epi8(_mm256_load_si256(as_vector(half_line)), value, bytes);
  _mm256_stream_si256(as_vector(half_line), value);
}

void write(const RunSlice &slice) {
  for (uint32_t w = 0; w < slice.words; w += kWordsPerWrite)
    for (int bank = 0; bank < 2; ++bank) {
      if (slice.lanes[bank] == 0) continue;
      const __m256i bytes = bytes_of_lanes(slice.lanes[bank]);
      const bool is_whole = slice.lanes[bank] == 0xFF;
      __m256i x[8];
      for (int chip = 0; chip < 8; ++chip) {
        const uint8_t *row = slice.host[bank][chip] + kWordBytes * w;
        _mm_prefetch(reinterpret_cast<const char *>(row) + kHostPrefetchBytes, _MM_HINT_T0);
        x[chip] = _mm256_loadu_si256(as_vector(row));
      }
      uint8_t *lines = slice.lines + kLineStride * w + kLineBytes * static_cast<uint64_t>(bank);
      for (uint64_t odd = 0; odd < 2; ++odd) {  // first words 0 and 2, then words 1 and 3; each of
                                                // the two words is in one 128-bit half
        __m256i pairs[4], quads_low[2], quads_high[2];
        for (int i = 0; i < 4; ++i)
          pairs[i] = odd ? _mm256_unpackhi_epi8(x[2 * i], x[2 * i + 1])
                         : _mm256_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
        for (int i = 0; i < 2; ++i) {
          quads_low[i] = _mm256_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]);
          quads_high[i] = _mm256_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]);
        }
        const __m256i beats01 = _mm256_unpacklo_epi32(quads_low[0], quads_low[1]);
        const __m256i beats23 = _mm256_unpackhi_epi32(quads_low[0], quads_low[1]);
        const __m256i beats45 = _mm256_unpacklo_epi32(quads_high[0], quads_high[1]);
        const __m256i beats67 = _mm256_unpackhi_epi32(quads_high[0], quads_high[1]);
        uint8_t *first = lines + kLineStride * odd, *second = lines + kLineStride * (odd + 2);
        store_half_line(first, _mm256_permute2x128_si256(beats01, beats23, 0x20), bytes, is_whole);
        store_half_line(first + 32, _mm256_permute2x128_si256(beats45, beats67, 0x20), bytes,
                        is_whole);
        store_half_line(second, _mm256_permute2x128_si256(beats01, beats23, 0x31), bytes, is_whole);
        store_half_line(second + 32, _mm256_permute2x128_si256(beats45, beats67, 0x31), bytes,
                        is_whole);
      }
    }
}

void broadcast(const RunSlice &slice) {
  const __m256i low =
      _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i high = _mm256_add_epi8(low, _mm256_set1_epi8(4));
  uint8_t *line = slice.lines;
  for (uint64_t w = 0; w < slice.words; ++w, line += kLineStride) {
    long long word;
    std::memcpy(&word, slice.host[0][0] + kWordBytes * w, sizeof word);
    const __m256i replicated = _mm256_set1_epi64x(word);
    for (int bank = 0; bank < 2; ++bank) {
      if (slice.lanes[bank] == 0) continue;
      const __m256i bytes = bytes_of_lanes(slice.lanes[bank]);
      const bool is_whole = slice.lanes[bank] == 0xFF;
      uint8_t *half_line = line + kLineBytes * static_cast<uint64_t>(bank);
      store_half_line(half_line, _mm256_shuffle_epi8(replicated, low), bytes, is_whole);
      store_half_line(half_line + 32, _mm256_shuffle_epi8(replicated, high), bytes, is_whole);
    }
  }
}

/// Two lines -> the words of chips 2i and 2i+1 of the first line in the lower half of words[i], and
/// of the second line in the upper half of words[i].
inline void gather_words(const uint8_t *first, const uint8_t *second, __m256i (&words)[4]) {
  // 16-bit pieces: beats 2i and 2i+1 of each chip side by side.
  const __m256i pair_beats =
      _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0F070E060D050C04, 0x0B030A0209010800));
  __m256i beats[4];
  for (int i = 0; i < 4; ++i) {
    const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i *>(first) + i);
    const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i *>(second) + i);
    beats[i] = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1),
                                   pair_beats);
  }
  const __m256i low0123 = _mm256_unpacklo_epi16(beats[0], beats[1]),
                high0123 = _mm256_unpackhi_epi16(beats[0], beats[1]);
  const __m256i low4567 = _mm256_unpacklo_epi16(beats[2], beats[3]),
                high4567 = _mm256_unpackhi_epi16(beats[2], beats[3]);
  words[0] = _mm256_unpacklo_epi32(low0123, low4567);
  words[1] = _mm256_unpackhi_epi32(low0123, low4567);
  words[2] = _mm256_unpacklo_epi32(high0123, high4567);
  words[3] = _mm256_unpackhi_epi32(high0123, high4567);
}

void read(const RunSlice &slice, bool stream) {
  const uint8_t *const prefetch_end = slice.lines + kLineStride * slice.words;
  for (uint32_t w = 0; w < slice.words; w += kWordsPerStep) {
    const uint8_t *step_lines = slice.lines + kLineStride * w;
    if (step_lines + kLinePrefetchBytes < prefetch_end)
      for (uint64_t i = 0; i < kWordsPerStep * kLineStride; i += kLineBytes)
        _mm_prefetch(reinterpret_cast<const char *>(step_lines) + kLinePrefetchBytes + i,
                     _MM_HINT_T0);
    for (int bank = 0; bank < 2; ++bank) {
      if (slice.lanes[bank] == 0) continue;
      const uint8_t *line = step_lines + kLineBytes * static_cast<uint64_t>(bank);
      __m256i even[2][4], odd[2][4];  // index 0: of words 0 to 3; index 1: of words 4 to 7
      for (int half = 0; half < 2; ++half, line += 4 * kLineStride) {
        gather_words(line, line + 2 * kLineStride, even[half]);
        gather_words(line + kLineStride, line + 3 * kLineStride, odd[half]);
      }
      for (int chip = 0; chip < 8; ++chip) {
        uint8_t *row = slice.host[bank][chip] + kWordBytes * w;
        for (int half = 0; half < 2; ++half, row += 32) {
          const __m256i words =
              chip % 2 ? _mm256_unpackhi_epi64(even[half][chip / 2], odd[half][chip / 2])
                       : _mm256_unpacklo_epi64(even[half][chip / 2], odd[half][chip / 2]);
          if (stream)
            _mm256_stream_si256(as_vector(row), words);
          else
            _mm256_storeu_si256(as_vector(row), words);
        }
      }
    }
  }
}

}  // namespace

const LineKernels kAvx2Kernels = {
    "avx2", kWordsPerStep, write, broadcast, read, portable_read_lane, portable_write_lane};

}  // namespace dpuemu
