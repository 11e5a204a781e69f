// Predicts the time of a plan on a machine.
#pragma once

#include <functional>

#include "model/work.h"

namespace pidcomm {

/// Checks a machine. Errors: ERR_ARGUMENT (a constant is negative, infinite or NaN; a constant by
/// which the model divides is 0; a count is not a whole number; or the machine has no instruction
/// set).
void check_machine(const pidcomm_machine &machine);

/// Returns the code of the machine's best instruction set. Errors: ERR_ARGUMENT (the machine has no
/// instruction set).
int best_isa_of(const pidcomm_machine &machine);

/// Returns the options with the defaults of the machine. Errors: ERR_OPTION.
Options resolve_for(const pidcomm_machine &machine, const pidcomm_options *options);

/// Predicts the time of a plan. The predicted time depends only on the arguments. Requires:
/// check_machine does not throw for the machine, and resolve_for has returned plan.options.
pidcomm_prediction price(const Plan &plan, const pidcomm_machine &machine);

/// Makes the plan of PIDCOMM_TECHNIQUE_AUTO: of all techniques that can carry out the request, the
/// plan uses the technique with the lowest predicted time. If several techniques have the lowest
/// time, the plan uses the first of them in PIDCOMM_TECHNIQUES. cheapest_plan considers techniques
/// whose PEs reorder blocks only if scratch_offset is not 0. It never considers techniques that
/// exist only for comparison (last column of PIDCOMM_TECHNIQUES). Errors: those of `tile` for the
/// request, and those of scratch_offset if scratch_offset is not 0.
Plan cheapest_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options,
                   uint64_t heap_base, const pidcomm_machine &machine);

/// If the technique is `auto`, calls cheapest_plan with the machine that machine() returns. For all
/// other techniques, calls make_plan.
Plan plan_on(const std::function<pidcomm_machine()> &machine, const Hypercube &cube,
             const pidcomm_request &request, const Options &options, uint64_t heap_base);

}  // namespace pidcomm
