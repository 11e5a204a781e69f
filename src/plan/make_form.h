// The functions that make_plan calls to make the form of a plan.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace pidcomm {

struct FormInputs {
  const Plan &plan;  // everything except its form
  const CollectiveRule &rule;
  const std::optional<LaneSplit> &split;  // has a value if the technique needs one
  int steps;                              // PIDCOMM_STEP bits of the steps that the technique uses
};

/// Declares a function for every path of PIDCOMM_TECHNIQUES. bytes may be 0. Errors: ERR_SIZE or ERR_WINDOW if the path cannot use the
/// sizes or the scratch.
#define PIDCOMM_ROW(ENUM, code, name, path, ...) Form make_##path(const FormInputs &inputs);
PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Makes the steps of the PEs. Errors: ERR_SIZE, ERR_WINDOW (scratch).
PeSteps make_pe_steps(const FormInputs &inputs);

/// Returns the number of blocks in a row of the extent.
uint64_t blocks_of(const Extent &extent, const Grouping &grouping);

/// Calls visit(sweep) for every sweep of every round. Returns the number of rounds.
uint32_t each_member_step(const Plan &plan, const RingForm &form, const std::function<void(const Sweep &)> &visit);
uint32_t each_member_step(const Plan &plan, const TreeForm &form, const std::function<void(const Sweep &)> &visit);

}  // namespace pidcomm
