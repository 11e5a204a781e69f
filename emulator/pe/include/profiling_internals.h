/// profiling_internals.h: what a profiled section keeps.
#ifndef PE_PROFILING_INTERNALS_H
#define PE_PROFILING_INTERNALS_H

#include <dpu_characteristics.h>
#include <stdint.h>

#ifndef NR_THREADS
#define NR_THREADS DPU_NR_THREADS
#endif

typedef struct {
  uint32_t start[NR_THREADS];  // per tasklet: the counter when it entered
  uint32_t count[NR_THREADS];  // per tasklet: cycles spent within
} dpu_profiling_t;

#endif  // PE_PROFILING_INTERNALS_H
