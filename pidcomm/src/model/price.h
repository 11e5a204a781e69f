// Predicts the time of a plan on a machine.
#pragma once

#include <functional>
#include <vector>

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

struct PricedPlan {
  Plan plan;
  pidcomm_prediction prediction;
};

/// Makes the plans that PIDCOMM_TECHNIQUE_AUTO may use, the one with the lowest predicted time
/// first; plans with equal times are in the order of PIDCOMM_TECHNIQUES. They are the plans of all
/// techniques that can carry out the request, except: techniques that exist only for comparison (a
/// column of PIDCOMM_TECHNIQUES); techniques whose PEs reorder blocks, if scratch_offset is 0; and
/// techniques other than `tile` that copy through more than 64 MiB of host memory. The only
/// plan is that of `tile` for reductions of floats or with an operator of the program, whose
/// results depend on the technique; for messages; for 0 bytes; and for the instruction set `audit`.
/// Errors: those of `tile`.
std::vector<PricedPlan> priced_plans(const Hypercube &cube, const pidcomm_request &request,
                                     const Options &options, uint64_t heap_base,
                                     const pidcomm_machine &machine);

/// Returns the techniques that may be the fastest: the first plan's, and `tile` and `conventional`
/// if their predicted ranges of times begin before the range of the first plan ends. If PEs reorder
/// blocks in the first plan, only its technique is in the result.
std::vector<int> rival_techniques(const std::vector<PricedPlan> &plans);

/// If the technique is `auto`, returns the first of priced_plans for the machine that machine()
/// returns. For all other techniques, calls make_plan.
Plan plan_on(const std::function<pidcomm_machine()> &machine, const Hypercube &cube,
             const pidcomm_request &request, const Options &options, uint64_t heap_base);

}  // namespace pidcomm
