// Which line kernel reduces the elements of a plan.
#pragma once

#include <optional>

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

/// Return the functions for a plan's element type and operator, or null if the plan does not
/// reduce.
inline const Accumulator *accumulator_of(const Kernels &kernels, const Plan &plan) {
  return plan.reduces ? &kernels.accumulators[plan.type.code - PIDCOMM_INT8][plan.op] : nullptr;
}
inline const Reducer *reducer_of(const Kernels &kernels, const Plan &plan) {
  return plan.reduces ? &kernels.reducers[plan.type.code - PIDCOMM_INT8][plan.op] : nullptr;
}

/// Returns what a plan's operator does with the results for `members` members, if it has no
/// `combine`. The result of a gather is for one member.
inline std::optional<Finish> finish_of(const Plan &plan, uint32_t members) {
  if (!plan.finish) return std::nullopt;
  return Finish{plan.finish->store, plan.finish->context, plan.type.size_bytes, members};
}

}  // namespace pidcomm
