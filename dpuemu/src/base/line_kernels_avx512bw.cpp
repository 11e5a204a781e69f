// AVX-512 without VBMI: the byte transpose of a line takes three instructions.
#include <immintrin.h>

#include <cstring>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

inline __m512i transpose_bytes(__m512i line) {
  // Move the low halves of the 8 words into the lower 256 bits and the high halves into the upper
  // 256 bits, transpose 4x4 bytes within 128 bits, and join the quarters.
  const __m512i split = _mm512_set_epi32(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i within =
      _mm512_broadcast_i32x4(_mm_set_epi64x(0x0F0B07030E0A0602, 0x0D0905010C080400));
  const __m512i join = _mm512_set_epi32(15, 11, 14, 10, 13, 9, 12, 8, 7, 3, 6, 2, 5, 1, 4, 0);
  return _mm512_permutexvar_epi32(
      join, _mm512_shuffle_epi8(_mm512_permutexvar_epi32(split, line), within));
}

}  // namespace
}  // namespace dpuemu

#include "base/line_kernels_avx512.inc"

namespace dpuemu {
const LineKernels kAvx512BwKernels = {"avx512bw", kWordsPerStep, write,     broadcast,
                                      read,       read_lane,     write_lane};
}  // namespace dpuemu
