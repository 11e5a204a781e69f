// The interface from which an executor gets its plans. A planner may choose the technique with the
// lowest predicted time.
#pragma once

#include "plan/plan.h"

namespace pidcomm {

class Planner {
 public:
  virtual ~Planner() = default;

  /// Returns a number that changes whenever PIDCOMM_TECHNIQUE_AUTO may choose another technique for
  /// the same request. A plan that was made for an earlier number is then stale.
  virtual uint64_t version() const = 0;

  /// Replaces PIDCOMM_TECHNIQUE_AUTO by a technique, then calls make_plan. Errors: those of
  /// make_plan. Any thread may call plan().
  virtual Plan plan(const Hypercube &cube, const pidcomm_request &request, const Options &options,
                    uint64_t heap_base) const = 0;
};

}  // namespace pidcomm
