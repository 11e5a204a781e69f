/// dpu_log.h: reads the output of one DPU's program.
#ifndef DPU_LOG_H
#define DPU_LOG_H

#include <dpu_error.h>
#include <dpu_types.h>
#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Does the same as dpu_log_read for a set that contains only `dpu`.
dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_LOG_H
