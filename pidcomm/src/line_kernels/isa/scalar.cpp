// scalar: runs on every x86-64 machine, and is the reference for all other instruction sets.
#include <emmintrin.h>

#include "base/bits.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "line_kernels/line.h"

namespace pidcomm {
namespace {

#include "line_kernels/isa/scalar_ops.inl"

struct Isa : ScalarOps {
  static constexpr bool kHasUnprefetchedVisits = false;
  static Line load_line(const std::byte *from) { return *reinterpret_cast<const Line *>(from); }
  static void store_line(std::byte *to, Line line) {
    for (int i = 0; i < Line::kParts; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i *>(to) + i, (__m128i)line.part[i]);
  }
  static void store_words_non_temporal(std::byte *to, Line words) { store_line(to, words); }
  static void flush_line(const std::byte *line) { _mm_clflush(line); }
  static void prefetch_line(const std::byte *line) {
    __builtin_prefetch(line);
    keep_calls();
  }
  static void prefetch_far(const std::byte *line) { prefetch_line(line); }
};

#include "line_kernels/passes.inl"

}  // namespace

PIDCOMM_REDUCERS(SCALAR)
PIDCOMM_KERNELS(SCALAR, "scalar", SCALAR)

}  // namespace pidcomm
