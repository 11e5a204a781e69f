/// dpu_description.h: the chip and the shape of a rank, with the names of the UPMEM SDK. Fields of
/// the SDK that concern its drivers are absent.
#ifndef DPU_DESCRIPTION_H
#define DPU_DESCRIPTION_H

#include <dpu_hw_description.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct _dpu_description_t {
  struct dpu_hw_description_t hw;
} *dpu_description_t;

/// These calls have no effect, because a description exists as long as the process.
void dpu_acquire_description(dpu_description_t description);
void dpu_free_description(dpu_description_t description);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_DESCRIPTION_H
