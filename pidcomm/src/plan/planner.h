// The interface from which an executor gets the techniques of PIDCOMM_TECHNIQUE_AUTO.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace pidcomm {

class Planner {
 public:
  virtual ~Planner() = default;

  /// Returns a number that changes whenever `techniques` may return other techniques for the same
  /// request. A plan that was made for an earlier number is then stale.
  virtual uint64_t version() const = 0;

  /// Returns the techniques that PIDCOMM_TECHNIQUE_AUTO may use for a request: first the one with
  /// the lowest predicted time, then those that may be faster within the errors of the
  /// predictions. Errors: those of make_plan with `tile`. Any thread may call techniques().
  virtual std::vector<int> techniques(const Hypercube &cube, const pidcomm_request &request,
                                      const Options &options, uint64_t heap_base) const = 0;
};

}  // namespace pidcomm
