// Plans and prices for the functions of several headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plan/planner.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// Predicts times for machine_in_use().
const Planner &planner();

/// axes: the number of axes, and PIDCOMM_FOREACH_ORDER for PeOrder::foreach. Errors: ERR_SHAPE,
/// ERR_ARGUMENT (axis_len is null).
Hypercube cube_of(uint32_t axes, const uint32_t *axis_len);

/// Checks the arguments with which a caller receives a text of this name; deliver_text
/// fills them.
void require_text(const char *text, const char *name, size_t capacity, const size_t *length);
void deliver_text(const std::string &own, char *text, size_t capacity, size_t *length);

}  // namespace pidcomm
