// The plans of the most recent calls on one hypercube.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/prepared_sweep.h"
#include "exec/sweep_pass.h"
#include "plan/planner.h"

namespace pidcomm {

/// A plan and its key. The mutex of the cache also guards `prepared`.
struct CachedPlan {
  pidcomm_request request;
  std::string mask;
  Options options;
  uint64_t version;  // the planner's version() when the planner made the plan
  Plan plan;
  std::shared_ptr<const PreparedSweep>
      prepared{};  // of a TileForm; kept between calls unless it is large
  std::unique_ptr<SweepRun>
      run{};  // of `prepared`, by one thread; only for the call that moves bytes

  bool is_for(const pidcomm_request &other, const Options &other_options, uint64_t other_base,
              const Planner &planner) const;
};

/// Not safe for several threads at a time.
class PlanCache {
 public:
  /// planner, cube: must outlive the cache.
  PlanCache(const Planner &planner, const Hypercube &cube) : planner_(planner), cube_(cube) {}

  /// Returns the plan of a request, from the cache if it has the plan. If the planner would choose
  /// another technique now, makes the plan again. Errors: those of Planner::plan.
  std::shared_ptr<CachedPlan> plan_for(const pidcomm_request &request, const Options &options,
                                       uint64_t heap_base);

 private:
  const Planner &planner_;
  const Hypercube &cube_;
  std::vector<std::shared_ptr<CachedPlan>> plans_;  // the most recently used plan first
};

}  // namespace pidcomm
