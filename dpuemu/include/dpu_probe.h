/// dpu_probe.h: the energy probe that the programs of the PrIM benchmarks include if they are built
/// with ENERGY.
///
/// The emulator has no energy model: every function returns DPU_ERR_INTERNAL, and
/// dpu_error_to_string says so.
#ifndef DPU_PROBE_H
#define DPU_PROBE_H

#include <dpu_error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct dpu_probe_t {
  const char *name;
};

typedef enum dpu_probe_metric_t {
  DPU_ENERGY,
} dpu_probe_metric_t;

typedef enum dpu_probe_aggregate_t {
  DPU_AVERAGE,
} dpu_probe_aggregate_t;

dpu_error_t dpu_probe_init(const char *name, struct dpu_probe_t *probe);
dpu_error_t dpu_probe_start(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_stop(struct dpu_probe_t *probe);
dpu_error_t dpu_probe_get(struct dpu_probe_t *probe, dpu_probe_metric_t metric,
                          dpu_probe_aggregate_t aggregate, double *value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_PROBE_H
