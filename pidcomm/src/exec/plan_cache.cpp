#include "exec/plan_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

std::shared_ptr<CachedPlan> PlanCache::plan_for(const pidcomm_request &request,
                                                const Options &options, uint64_t heap_base) {
  constexpr std::size_t kCachedPlans = 16;
  const char *const mask = request.collective == PIDCOMM_SENDRECV ? "" : request.mask;
  if (mask != nullptr) {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto &cached) {
      return cached->is_for(request, options, heap_base, planner_);
    });
    if (found != plans_.end()) {
      std::rotate(plans_.begin(), found, found + 1);
      return plans_.front();
    }
  }
  const uint64_t version = planner_.version();  // read first: if the version changes meanwhile, the
                                                // plan is only made once more
  Plan plan = planner_.plan(cube_, request, options, heap_base);
  constexpr uint64_t kKeptMessageBytes = uint64_t{16} << 20;
  if (plan.messages != nullptr && plan.messages->table_bytes() > kKeptMessageBytes)
    return std::shared_ptr<CachedPlan>(
        new CachedPlan{request, mask, options, version, std::move(plan)});
  if (plans_.size() == kCachedPlans) plans_.pop_back();
  plans_.insert(plans_.begin(), std::shared_ptr<CachedPlan>(new CachedPlan{
                                    request, mask, options, version, std::move(plan)}));
  return plans_.front();
}

}  // namespace pidcomm
