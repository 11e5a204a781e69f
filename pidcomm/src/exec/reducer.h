// Which line kernel reduces the elements of a plan.
#pragma once

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

/// Returns the functions for a plan's element type and operator, or null if the plan does not
/// reduce.
inline const Reducer *reducer_of(const Kernels &kernels, const Plan &plan) {
  return plan.reduces ? &kernels.reducers[plan.type.code - PIDCOMM_INT8][plan.op] : nullptr;
}

}  // namespace pidcomm
