/// dpu_program.h: the program of a DPU.
#ifndef DPU_PROGRAM_H
#define DPU_PROGRAM_H

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Returns the program that is loaded in the DPU, as an opaque argument for dpu_get_symbol. Returns
/// NULL if no program is loaded or the DPU's set has been freed.
struct dpu_program_t *dpu_get_program(struct dpu_t *dpu);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_PROGRAM_H
