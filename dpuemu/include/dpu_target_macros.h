/// dpu_target_macros.h: the bits of a rank's number. The SDK stores the type of a rank in the upper
/// DPU_TARGET_LOG2_SIZE bits of its number; dpuemu stores 0.
#ifndef DPU_TARGET_MACROS_H
#define DPU_TARGET_MACROS_H

#include <dpu_target.h>
#include <dpu_types.h>
#include <limits.h>

#define DPU_TARGET_LOG2_SIZE 4
#define DPU_TARGET_SHIFT (CHAR_BIT * sizeof(dpu_rank_id_t) - DPU_TARGET_LOG2_SIZE)
#define DPU_TARGET_MASK ((1 << DPU_TARGET_SHIFT) - 1)

#endif  // DPU_TARGET_MACROS_H
