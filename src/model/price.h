// The predicted time of a plan on a machine.
#pragma once

#include <functional>

#include "model/work.h"

namespace pidcomm {

/// Errors: ERR_ARGUMENT (a number that is negative, infinite or NaN, 0 where the model divides by it, no count where it counts, or no
/// instruction set).
void check_machine(const pidcomm_machine &machine);

/// The machine's best instruction set, a code. Errors: ERR_ARGUMENT (it has none).
int best_isa_of(const pidcomm_machine &machine);

/// The options on the machine. Errors: ERR_OPTION.
Options resolve_for(const pidcomm_machine &machine, const pidcomm_options *options);

/// Requires: check_machine. plan.options are those of resolve_for. Depends on its arguments only.
pidcomm_prediction price(const Plan &plan, const pidcomm_machine &machine);

/// The plan of PIDCOMM_TECHNIQUE_AUTO: the technique with the lowest price among those that can carry out the request; on a tie, the first.
/// Techniques whose PEs reorder take part only if scratch_offset is not 0; techniques for comparison never do (PIDCOMM_TECHNIQUES). Errors:
/// those of `tile` for the request, and of scratch_offset if it is given.
Plan cheapest_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base,
                   const pidcomm_machine &machine);

/// make_plan; cheapest_plan on machine() if the technique is auto.
Plan plan_on(const std::function<pidcomm_machine()> &machine, const Hypercube &cube, const pidcomm_request &request, const Options &options,
             uint64_t heap_base);

}  // namespace pidcomm
