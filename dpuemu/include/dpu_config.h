/// dpu_config.h: the reset of ranks. Names and signatures match the UPMEM SDK.
#ifndef DPU_CONFIG_H
#define DPU_CONFIG_H

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Wait for the asynchronous work and running PEs of the rank, then clear the faults of its PEs, or
/// of one PE. Programs and memories keep their contents. Errors: DPU_ERR_INVALID_DPU_SET if the
/// rank is not allocated, DPU_ERR_MRAM_BUSY, DPU_ERR_INTERNAL inside a callback of the rank.
dpu_error_t dpu_reset_rank(struct dpu_rank_t *rank);
dpu_error_t dpu_reset_dpu(struct dpu_t *dpu);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_CONFIG_H
