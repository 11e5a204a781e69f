// Run-time choice of the instruction set.
#include <string_view>

#include "base/error.h"
#include "line_kernels/kernels.h"

namespace pidcomm {

#define PIDCOMM_ROW(ENUM, code, name, level) extern const Kernels kKernels##ENUM;
PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

namespace {

struct IsaRow {
  int code, level;
  const Kernels *kernels;
};

constexpr IsaRow kRows[] = {
#define PIDCOMM_ROW(ENUM, code, name, level) {code, level, &kKernels##ENUM},
    PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

}  // namespace

bool isa_available(int isa) {
  const bool has_avx512bw = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case PIDCOMM_ISA_SCALAR:
    case PIDCOMM_ISA_AUDIT:
      return true;
    case PIDCOMM_ISA_AVX2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("clflushopt");
    case PIDCOMM_ISA_AVX512BW:
      return has_avx512bw;
    case PIDCOMM_ISA_AVX512VBMI:
      return has_avx512bw && __builtin_cpu_supports("avx512vbmi");
    default:
      return false;
  }
}

const Kernels &kernels_of(int isa) {
  for (const IsaRow &row : kRows)
    if (row.code == isa) return *row.kernels;
  fail(PIDCOMM_ERR_INTERNAL, "no kernels for ISA code ", isa);
}

int best_isa() {
  const IsaRow *best = &kRows[0];
  for (const IsaRow &row : kRows)
    if (row.level > best->level && isa_available(row.code)) best = &row;
  return best->code;
}

}  // namespace pidcomm
