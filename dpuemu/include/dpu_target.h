/// dpu_target.h: the kinds of DPUs that the UPMEM SDK knows. In dpuemu all ranks are HW.
#ifndef DPU_TARGET_H
#define DPU_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef enum dpu_type_t {
  FUNCTIONAL_SIMULATOR,
  CYCLE_ACCURATE_SIMULATOR,
  RTL_SIMULATOR,
  HW,
  BACKUP_SPI,
  SCENARIO,
  NB_OF_DPU_TYPES,
} dpu_type_t;

/// Returns the name of the constant, or "UNKNOWN".
static inline const char *dpu_type_to_string(dpu_type_t dpu_type) {
  static const char *const kNames[] = {"FUNCTIONAL_SIMULATOR", "CYCLE_ACCURATE_SIMULATOR",
                                       "RTL_SIMULATOR",        "HW",
                                       "BACKUP_SPI",           "SCENARIO"};
  return (unsigned)dpu_type < NB_OF_DPU_TYPES ? kNames[dpu_type] : "UNKNOWN";
}

/// Stores the type that the value of `backend` in a profile names. Returns whether there is one.
static inline bool dpu_type_from_profile_string(const char *string, dpu_type_t *dpu_type) {
  static const char *const kValues[] = {"simulator", "cas", "model", "hw", "spi", "scenario"};
  for (size_t i = 0; i < NB_OF_DPU_TYPES; ++i)
    if (strcmp(string, kValues[i]) == 0) {
      *dpu_type = (dpu_type_t)i;
      return true;
    }
  return false;
}

#endif  // DPU_TARGET_H
