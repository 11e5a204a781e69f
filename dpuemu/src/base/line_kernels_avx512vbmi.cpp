// AVX-512 with VBMI: the byte transpose of a line takes one instruction.
#include <immintrin.h>

#include <cstring>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {
namespace {

inline __m512i transpose_bytes(__m512i line) {
  // Byte 8i+j of the index vector is 8j+i.
  const __m512i index = _mm512_set_epi64(0x3F372F271F170F07, 0x3E362E261E160E06, 0x3D352D251D150D05,
                                         0x3C342C241C140C04, 0x3B332B231B130B03, 0x3A322A221A120A02,
                                         0x3931292119110901, 0x3830282018100800);
  return _mm512_permutexvar_epi8(index, line);
}

}  // namespace
}  // namespace dpuemu

#include "base/line_kernels_avx512.inc"

namespace dpuemu {
const LineKernels kAvx512VbmiKernels = {"avx512vbmi", kWordsPerStep, write,     broadcast,
                                        read,         read_lane,     write_lane};
}  // namespace dpuemu
