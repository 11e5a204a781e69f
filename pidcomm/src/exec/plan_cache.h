// The plans of the most recent calls on one hypercube.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/choices.h"
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
      prepared{};  // of a TileForm, or null; see PlanCache::keep_prepared
  // Only for the call that moves bytes: a small run by one thread, and the tables that it uses.
  std::shared_ptr<const PreparedSweep> run_prepared{};
  std::unique_ptr<SweepRun> run{};

  bool is_for(const pidcomm_request &other, const Options &other_options, uint64_t other_base,
              const Planner &planner) const;
};

/// The plan of a call, and the trial for which the call must be timed, or null.
struct PlannedCall {
  std::shared_ptr<CachedPlan> cached{};
  std::shared_ptr<Trial> trial{};
};

/// The plans of one hypercube. A plan of PIDCOMM_TECHNIQUE_AUTO gets into the cache when the choice
/// is final; until then, the cache has the plans of the techniques that take turns. Not safe for
/// several threads at a time.
class PlanCache {
 public:
  /// planner, cube: must outlive the cache. is_whole_set: whether the cube has all PEs of its set.
  PlanCache(const Planner &planner, const Hypercube &cube, bool is_whole_set)
      : planner_(planner), cube_(cube), is_whole_set_(is_whole_set) {}

  const Planner &planner() const { return planner_; }
  /// Keeps at least `plans` plans from now on.
  void keep(std::size_t plans) { kept_plans_ = std::max(kept_plans_, plans); }

  /// Returns the plan of a request, from the cache if it has the plan. is_timed: whether a trial
  /// may time the call. Errors: those of make_plan.
  PlannedCall plan_for(const pidcomm_request &request, const Options &options, uint64_t heap_base,
                       bool is_timed);

  /// Keeps the tables of a plan of the cache for later calls, unless they have more than 256 MiB.
  /// Forgets tables of other plans, the least recently used first, until all kept tables together
  /// have at most 256 MiB.
  void keep_prepared(CachedPlan &cached, std::shared_ptr<const PreparedSweep> prepared);

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{256} << 20;

  std::shared_ptr<CachedPlan> find(const pidcomm_request &request, const Options &options,
                                   uint64_t heap_base);
  std::shared_ptr<CachedPlan> add(const pidcomm_request &request, const Options &options,
                                  uint64_t version, Plan plan);

  std::string key_of(const pidcomm_request &request, const Options &options) const;

  const Planner &planner_;
  const Hypercube &cube_;
  const bool is_whole_set_;
  std::size_t kept_plans_ = 16;
  std::vector<std::shared_ptr<CachedPlan>> plans_;  // the most recently used plan first
};

}  // namespace pidcomm
