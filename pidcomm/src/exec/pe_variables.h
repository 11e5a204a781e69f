// Variables of PE programs that hold the place of each PE in its hypercube.
#pragma once

#include <string>
#include <vector>

#include "exec/placement.h"

namespace pidcomm {

/// Fills those variables of pidcomm_fill_variables (pidcomm.h) that the program of the PEs
/// declares. axis_names: one per axis. The caller has waited for earlier work of the set. Errors:
/// those of pidcomm_fill_variables.
void fill_variables(struct dpu_set_t set, const Placement &placement, const Hypercube &cube,
                    const std::vector<std::string> &axis_names);

}  // namespace pidcomm
