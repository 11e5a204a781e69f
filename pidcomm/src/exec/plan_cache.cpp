#include "exec/plan_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/geometry.h"
#include "plan/request.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

/// Whether a plan has the operator of a request, which may be null.
bool has_operation_of(const Plan &plan, const pidcomm_operator *other) {
  const bool is_fold = plan.fold && plan.fold->has_operation();
  if (other == nullptr || !(is_fold || plan.finish))
    return other == nullptr && !is_fold && !plan.finish;
  if (other->size != sizeof *other ||
      !are_same(is_fold ? plan.fold->operation : *plan.finish, *other))
    return false;
  if (!plan.fold || plan.fold->identity.empty()) return true;
  if (!plan.fold->has_own_identity || other->identity == nullptr)
    return !plan.fold->has_own_identity && other->identity == nullptr;
  return std::memcmp(other->identity, plan.fold->identity.data(), plan.fold->identity.size()) == 0;
}

}  // namespace

bool CachedPlan::is_for(const pidcomm_request &other, const Options &other_options,
                        uint64_t other_base, const Planner &planner) const {
  if (options.technique == PIDCOMM_TECHNIQUE_AUTO && version != planner.version()) return false;
  if (plan.messages != nullptr)
    return other.collective == PIDCOMM_SENDRECV && request.src == other.src &&
           request.dst == other.dst && options == other_options && plan.heap_base == other_base &&
           plan.messages->is_of(other);
  return request.collective == other.collective && mask == other.mask &&
         request.bytes == other.bytes && request.src == other.src && request.dst == other.dst &&
         request.type == other.type && request.op == other.op &&
         request.host_stride == other.host_stride &&
         request.host_transposes == other.host_transposes &&
         has_operation_of(plan, other.operation) && options == other_options &&
         plan.heap_base == other_base;
}

/// Returns the plan of a request and makes it the most recently used one. Returns null if the cache
/// does not have the plan.
std::shared_ptr<CachedPlan> PlanCache::find(const pidcomm_request &request, const Options &options,
                                            uint64_t heap_base) {
  if (request.collective != PIDCOMM_SENDRECV && request.mask == nullptr) return nullptr;
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto &cached) {
    return cached->is_for(request, options, heap_base, planner_);
  });
  if (found == plans_.end()) return nullptr;
  std::rotate(plans_.begin(), found, found + 1);
  return plans_.front();
}

std::shared_ptr<CachedPlan> PlanCache::add(const pidcomm_request &request, const Options &options,
                                           uint64_t version, Plan plan) {
  constexpr uint64_t kKeptMessageBytes = uint64_t{16} << 20;
  const bool is_kept =
      plan.messages == nullptr || plan.messages->table_bytes() <= kKeptMessageBytes;
  const char *const mask = request.collective == PIDCOMM_SENDRECV ? "" : request.mask;
  std::shared_ptr<CachedPlan> made(
      new CachedPlan{request, mask, options, version, std::move(plan)});
  if (!is_kept) return made;
  if (plans_.size() >= kept_plans_) plans_.pop_back();
  plans_.insert(plans_.begin(), made);
  return made;
}

/// Returns the key of the request class: what the times of `tile` and `conventional` depend on.
/// Classes are four sizes per power of two, with blocks of whole lines or not.
std::string PlanCache::key_of(const pidcomm_request &request, const Options &options) const {
  const CollectiveRule &rule = rule_of(request.collective);
  const uint64_t group_pes = Grouping::of(cube_, request.mask).group_pes,
                 block_bytes = rule.bytes_are_blocks() ? request.bytes / group_pes : request.bytes;
  const int shift = std::max(static_cast<int>(std::bit_width(request.bytes)) - 3, 0);
  std::ostringstream key;
  key << name_of_collective(rule.code) << " " << cube_.to_string() << " " << request.mask
      << " bytes=" << (request.bytes >> shift << shift)
      << " whole_lines=" << (block_bytes % kLineBytes == 0);
  if (rule.reduces) key << " type=" << request.type << " op=" << request.op;
  if (rule.in.space == rule.out.space) key << " in_place=" << (request.src == request.dst);
  key << " stride=" << (request.host_stride != 0) << " transposes=" << request.host_transposes
      << " isa=" << options.isa << " threads=" << options.threads
      << " coherence=" << options.coherence << " whole_set=" << is_whole_set_
      << " emulated=" << ranks_are_coherent();
  return key.str();
}

PlannedCall PlanCache::plan_for(const pidcomm_request &request, const Options &options,
                                uint64_t heap_base, bool is_timed) {
  if (auto cached = find(request, options, heap_base)) return {std::move(cached)};
  const uint64_t version = planner_.version();  // read first: if the version changes meanwhile, the
                                                // plan is only made once more
  Options concrete = options;
  const auto make = [&]() -> PlannedCall {
    return {add(request, options, version, make_plan(cube_, request, concrete, heap_base))};
  };
  if (options.technique != PIDCOMM_TECHNIQUE_AUTO) return make();
  const auto techniques = [&] { return planner_.techniques(cube_, request, options, heap_base); };
  if (request.collective == PIDCOMM_SENDRECV || request.operation != nullptr) {
    concrete.technique = PIDCOMM_TECHNIQUE_TILE;  // as priced_plans says; the plans can be large
    return make();
  }
  if (options.scratch_offset != 0) {  // the techniques depend on the windows, which the key lacks
    concrete.technique = techniques()[0];
    return make();
  }
  const Choices::Choice choice =
      choices().choice_for(key_of(request, options), version, techniques);
  concrete.technique = is_timed ? choice.timed_technique : choice.technique;
  if (choice.trial == nullptr) return make();
  PlannedCall call = plan_for(request, concrete, heap_base, is_timed);
  if (is_timed) call.trial = choice.trial;
  return call;
}

void PlanCache::keep_prepared(CachedPlan &cached, std::shared_ptr<const PreparedSweep> prepared) {
  if (cached.prepared == prepared) return;
  cached.prepared = std::move(prepared);
  std::size_t kept_bytes = 0;
  for (const std::shared_ptr<CachedPlan> &plan : plans_) {
    if (plan->prepared == nullptr) continue;
    const std::size_t bytes = plan->prepared->bytes();
    if (kept_bytes + bytes <= kKeptBytes)
      kept_bytes += bytes;
    else
      plan->prepared = nullptr;
  }
}

}  // namespace pidcomm
