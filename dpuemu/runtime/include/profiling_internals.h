/// profiling_internals.h: the data of a profiled section.
#ifndef PE_PROFILING_INTERNALS_H
#define PE_PROFILING_INTERNALS_H

#include <dpu_characteristics.h>
#include <stdint.h>

#ifndef NR_THREADS
#define NR_THREADS DPU_NR_THREADS
#endif

typedef struct {
  uint32_t start[NR_THREADS];  // value of each tasklet's counter at the entry to the section
  uint32_t count[NR_THREADS];  // cycles that each tasklet spent in the section
} dpu_profiling_t;

#endif  // PE_PROFILING_INTERNALS_H
