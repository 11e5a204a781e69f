// Chooses the instruction set, and implements fence_stores and flush_lines, which do not use vector
// registers.
#include "base/line_kernels.h"

#include <cstdlib>
#include <cstring>

#include "base/address_map.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dpuemu {
namespace {

struct Candidate {
  const LineKernels *kernels;
  bool is_supported;
};

}  // namespace

const LineKernels *supported_line_kernels(uint32_t index) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx512bw = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
  const Candidate candidates[] = {
#if defined(__x86_64__)
      {&kAvx512VbmiKernels, has_avx512bw && __builtin_cpu_supports("avx512vbmi")},
      {&kAvx512BwKernels, has_avx512bw},
      {&kAvx2Kernels, static_cast<bool>(__builtin_cpu_supports("avx2"))},
#endif
      {&kPortableKernels, true},
  };
  for (const Candidate &candidate : candidates)
    if (candidate.is_supported && index-- == 0) return candidate.kernels;
  return nullptr;
}

const LineKernels *line_kernels_by_name(const char *isa) {
  const LineKernels *kernels;
  for (uint32_t i = 0; (kernels = supported_line_kernels(i)) != nullptr; ++i)
    if (std::strcmp(isa, kernels->isa) == 0) break;
  return kernels;
}

const LineKernels &line_kernels() {
  static const LineKernels *const chosen = [] {
    const char *wanted = std::getenv("DPUEMU_ISA");
    const LineKernels *found = wanted != nullptr ? line_kernels_by_name(wanted) : nullptr;
    return found != nullptr ? found : supported_line_kernels(0);
  }();
  return *chosen;
}

#if defined(__x86_64__)

void fence_stores() { _mm_sfence(); }

namespace {

[[gnu::target("clflushopt")]] void flush_range_opt(const uint8_t *begin, const uint8_t *end) {
  for (const uint8_t *line = begin; line < end; line += kLineBytes)
    _mm_clflushopt(const_cast<uint8_t *>(line));
}

void flush_range_plain(const uint8_t *begin, const uint8_t *end) {
  for (const uint8_t *line = begin; line < end; line += kLineBytes) _mm_clflush(line);
}

bool has_clflushopt() {
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  return (ebx >> 23) & 1;
}

}  // namespace

void flush_lines(const uint8_t *lines, uint32_t words) {
  static const auto flush_range = has_clflushopt() ? flush_range_opt : flush_range_plain;
  _mm_mfence();
  flush_range(lines, lines + words * kLineStride);
  _mm_mfence();
}

#else

void fence_stores() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void flush_lines(const uint8_t *, uint32_t) { fence_stores(); }

#endif

}  // namespace dpuemu
