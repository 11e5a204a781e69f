// The functions that make_plan calls to make the form of a plan.
#pragma once

#include "plan/plan.h"

namespace pidcomm {

struct FormInputs {
  const Plan &plan;  // the complete plan except its form
  const CollectiveRule &rule;
  const Split &split;
  int steps;  // PIDCOMM_STEP bits of the steps that the technique uses
};

/// Declares a function for every path of PIDCOMM_TECHNIQUES. `bytes` of the request may be 0.
/// Errors: ERR_SIZE if the path cannot use the sizes of the request, and ERR_WINDOW if the path
/// cannot use its PE scratch.
#define PIDCOMM_ROW(ENUM, code, name, path, ...) Form make_##path(const FormInputs &inputs);
PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Makes the PeSteps of a plan. Errors: ERR_SIZE, ERR_WINDOW (the PE scratch is not valid).
PeSteps make_pe_steps(const FormInputs &inputs);

/// Returns the number of blocks that an extent has per PE or per host row.
uint64_t blocks_of(const Extent &extent, const Grouping &grouping);

/// Calls visit(sweep) for every sweep of every round. Returns the number of rounds.
uint32_t each_member_step(const Plan &plan, const RingForm &form,
                          const std::function<void(const Sweep &)> &visit);
uint32_t each_member_step(const Plan &plan, const TreeForm &form,
                          const std::function<void(const Sweep &)> &visit);

}  // namespace pidcomm
