// Predicts the time of a plan on a machine.
#pragma once

#include <functional>

#include "model/work.h"

namespace pidcomm {

/// Checks a machine. Errors: ERR_ARGUMENT (a constant is negative, infinite or NaN; is 0 where the model divides by it; is not a whole
/// number where it is a count; or the machine has no instruction set).
void check_machine(const pidcomm_machine &machine);

/// Returns the code of the machine's best instruction set. Errors: ERR_ARGUMENT (the machine has no instruction set).
int best_isa_of(const pidcomm_machine &machine);

/// Returns the options with the defaults of the machine. Errors: ERR_OPTION.
Options resolve_for(const pidcomm_machine &machine, const pidcomm_options *options);

/// Predicts the time of a plan. The result depends only on the arguments. Requires: check_machine has accepted the machine, and
/// plan.options come from resolve_for.
pidcomm_prediction price(const Plan &plan, const pidcomm_machine &machine);

/// Makes the plan of PIDCOMM_TECHNIQUE_AUTO: of all techniques that can carry out the request, it uses the technique with the lowest price,
/// or the first of several. It considers techniques whose PEs reorder blocks only if scratch_offset is not 0, and never considers
/// techniques that exist for comparison (PIDCOMM_TECHNIQUES). Errors: those of `tile` for the request, and those of scratch_offset if it is
/// given.
Plan cheapest_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base,
                   const pidcomm_machine &machine);

/// Calls make_plan, or cheapest_plan for machine() if the technique is auto.
Plan plan_on(const std::function<pidcomm_machine()> &machine, const Hypercube &cube, const pidcomm_request &request, const Options &options,
             uint64_t heap_base);

}  // namespace pidcomm
