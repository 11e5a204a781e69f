// The interface from which an executor gets its plans. A planner may choose a technique by price.
#pragma once

#include "plan/plan.h"

namespace pidcomm {

class Planner {
 public:
  virtual ~Planner() = default;

  /// Returns a number that changes whenever PIDCOMM_TECHNIQUE_AUTO may choose another technique for the same request; older plans are then
  /// stale.
  virtual uint64_t version() const = 0;

  /// Calls make_plan, after it replaces PIDCOMM_TECHNIQUE_AUTO by a technique. Errors: those of make_plan. Any thread may call it.
  virtual Plan plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base) const = 0;
};

}  // namespace pidcomm
