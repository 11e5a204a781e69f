/// dpu_runner.h: launches of single ranks and DPUs. Names and signatures match the UPMEM SDK.
///
/// Errors of all functions: DPU_ERR_INVALID_DPU_SET if the rank or DPU is not allocated.
#ifndef DPU_RUNNER_H
#define DPU_RUNNER_H

#include <dpu_error.h>
#include <dpu_types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Start the loaded program, as dpu_launch with DPU_ASYNCHRONOUS. Errors: those of dpu_launch.
dpu_error_t dpu_boot_rank(struct dpu_rank_t *rank);
dpu_error_t dpu_boot_dpu(struct dpu_t *dpu);

/// Do the same as dpu_boot_rank and dpu_boot_dpu: thread must be DPU_BOOT_THREAD, which starts all
/// tasklets, and should_resume must be false. Errors: also DPU_ERR_INVALID_THREAD_ID.
dpu_error_t dpu_launch_thread_on_rank(struct dpu_rank_t *rank, dpu_thread_t thread,
                                      bool should_resume);
dpu_error_t dpu_launch_thread_on_dpu(struct dpu_t *dpu, dpu_thread_t thread, bool should_resume);

/// Store the status of the rank (of the DPU), as dpu_status.
dpu_error_t dpu_status_rank(struct dpu_rank_t *rank, bool *done, bool *fault);
dpu_error_t dpu_status_dpu(struct dpu_t *dpu, bool *done, bool *fault);

/// dpu_poll_rank only checks that the rank is allocated, because dpu_status_rank is always current.
dpu_error_t dpu_poll_rank(struct dpu_rank_t *rank);
dpu_error_t dpu_poll_dpu(struct dpu_t *dpu, bool *dpu_is_running, bool *dpu_is_in_fault);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_RUNNER_H
