// Chooses the instruction set at run time.
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "line_kernels/kernels.h"

namespace pidcomm {

#define X(ENUM) extern const Kernels kKernels##ENUM;
PIDCOMM_BUILT_ISAS  // of the build: X(SCALAR) X(AUDIT) ...
#undef X

    namespace {

  struct IsaRow {
    int code, level;
    const Kernels *kernels;
  };

#define PIDCOMM_ROW(ENUM, code, name, level) constexpr int kLevel##ENUM = level;
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

  constexpr IsaRow kRows[] = {
#define X(ENUM) {PIDCOMM_ISA_##ENUM, kLevel##ENUM, &kKernels##ENUM},
      PIDCOMM_BUILT_ISAS
#undef X
  };

}  // namespace

bool isa_available(int isa) {
  return std::any_of(std::begin(kRows), std::end(kRows), [isa](const IsaRow &row) {
    return row.code == isa && row.kernels->is_supported();
  });
}

const Kernels &kernels_of(int isa) {
  for (const IsaRow &row : kRows)
    if (row.code == isa) return *row.kernels;
  fail(PIDCOMM_ERR_INTERNAL, "no kernels for ISA code ", isa);
}

int best_isa() {
  const IsaRow *best = nullptr;
  for (const IsaRow &row : kRows)
    if ((best == nullptr || row.level > best->level) && isa_available(row.code)) best = &row;
  if (best == nullptr)
    fail(PIDCOMM_ERR_OPTION,
         "this machine cannot run any of the instruction sets for which the library was built");
  return best->code;
}

}  // namespace pidcomm
