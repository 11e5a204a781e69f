/// profiling.h: profiling of sections of code.
///
/// Differs from the SDK: sections can be declared but are not measured, even with DPU_PROFILING,
/// because the emulator has no tool that reads the measurements.
#ifndef PE_PROFILING_H
#define PE_PROFILING_H

#include <attributes.h>
#include <limits.h>
#include <profiling_internals.h>

#define PROFILING_RESET_VALUE (UINT32_MAX)

#define PROFILING_INIT(_name)                                     \
  __section(".dpu_profiling") dpu_profiling_t _name = {           \
      .start = {[0 ...(NR_THREADS - 1)] = PROFILING_RESET_VALUE}, \
      .count = {[0 ...(NR_THREADS - 1)] = 0},                     \
  }

#define profiling_start(context) \
  do {                           \
  } while (0)
#define profiling_stop(context) \
  do {                          \
  } while (0)

#endif  // PE_PROFILING_H
