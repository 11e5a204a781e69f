/// dpu_log_internals.h: passes the output of one DPU's program to a function.
#ifndef DPU_LOG_INTERNALS_H
#define DPU_LOG_INTERNALS_H

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// A line before the output of a DPU; the argument is dpu_get_id.
#define DPU_LOG_FORMAT_HEADER ("=== DPU#0x%x ===\n")

typedef dpu_error_t (*dpu_log_print_fct_t)(void *arg, const char *format, ...);

/// Calls print_fct(arg, format, ...) with the output of the DPU's program since the last call or
/// dpu_load. Errors: those of dpu_log_read, and the error that print_fct returns (then the output
/// is kept).
dpu_error_t dpulog_read_for_dpu_(struct dpu_t *dpu, dpu_log_print_fct_t print_fct, void *arg);

/// Prints to the stream `arg` (FILE *). Errors: DPU_ERR_SYSTEM.
dpu_error_t dpulog_c_print_fct(void *arg, const char *fmt, ...);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_LOG_INTERNALS_H
