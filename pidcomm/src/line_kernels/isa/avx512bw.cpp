// avx512bw: uses AVX-512 F, BW, DQ and VL, which servers with UPMEM DIMMs have.
#include <immintrin.h>

#include "base/bits.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "line_kernels/line.h"

namespace pidcomm {
namespace {

#include "line_kernels/isa/avx512_ops.inl"

struct Isa : Avx512Ops {
  /// Gathers the even and odd halves of the beats, transposes 4 x 4 bytes, and puts the halves back
  /// together.
  static Line transpose(Line x) {
    const __m512i halves = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i squares = _mm512_set4_epi32(0x0F0B0703, 0x0E0A0602, 0x0D090501, 0x0C080400);
    const __m512i words = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m512i gathered = _mm512_permutexvar_epi32(halves, reg(x));
    return line(_mm512_permutexvar_epi32(words, _mm512_shuffle_epi8(gathered, squares)));
  }
};

#include "line_kernels/passes.inl"

}  // namespace

PIDCOMM_REDUCERS(AVX512BW)
PIDCOMM_KERNELS(AVX512BW, "avx512bw", AVX512BW)

}  // namespace pidcomm
