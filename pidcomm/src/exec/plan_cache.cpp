#include "exec/plan_cache.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

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

/// Returns the key of the choice for a request: all that its time depends on. "": its choice is not
/// kept, because an operator of the program or a list of messages has no short key, or because the
/// request is not valid.
std::string key_of(const Hypercube &cube, const pidcomm_request &request, const Options &options) {
  const char *const name = name_of_collective(request.collective), *const mask = request.mask;
  const bool has_mask = mask != nullptr && std::strlen(mask) == cube.axes.size();
  if (name == nullptr || request.collective == PIDCOMM_SENDRECV || request.operation != nullptr ||
      !has_mask)
    return "";
  std::ostringstream key;
  key << name << " " << cube.to_string() << " " << mask << " bytes=" << request.bytes;
  const CollectiveRule &rule = rule_of(request.collective);
  if (rule.reduces) key << " type=" << request.type << " op=" << request.op;
  if (rule.in.space == rule.out.space) key << " in_place=" << (request.src == request.dst);
  key << " stride=" << request.host_stride << " transposes=" << request.host_transposes
      << " isa=" << options.isa << " threads=" << options.threads
      << " coherence=" << options.coherence << " scratch=" << options.scratch_offset
      << " emulated=" << ranks_are_coherent();
  return key.str();
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

/// Moves the entry to the front. Returns null if there is none.
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
  constexpr std::size_t kCachedPlans = 16;
  constexpr uint64_t kKeptMessageBytes = uint64_t{16} << 20;
  const bool is_kept =
      plan.messages == nullptr || plan.messages->table_bytes() <= kKeptMessageBytes;
  const char *const mask = request.collective == PIDCOMM_SENDRECV ? "" : request.mask;
  std::shared_ptr<CachedPlan> made(
      new CachedPlan{request, mask, options, version, std::move(plan)});
  if (!is_kept) return made;
  if (plans_.size() == kCachedPlans) plans_.pop_back();
  plans_.insert(plans_.begin(), made);
  return made;
}

Chosen PlanCache::plan_for(const pidcomm_request &request, const Options &options,
                           uint64_t heap_base) {
  if (auto cached = find(request, options, heap_base)) return {std::move(cached)};
  const uint64_t version = planner_.version();  // read first: if the version changes meanwhile, the
                                                // plan is only made once more
  if (options.technique != PIDCOMM_TECHNIQUE_AUTO)
    return {add(request, options, version, make_plan(cube_, request, options, heap_base))};
  const auto techniques = [&] { return planner_.techniques(cube_, request, options, heap_base); };
  std::string key = key_of(cube_, request, options);
  const Choices::Choice choice = key.empty() ? Choices::Choice{techniques()[0], nullptr}
                                             : choices().choice_for(key, version, techniques);
  Options concrete = options;
  concrete.technique = choice.technique;
  if (choice.trial == nullptr)
    return {add(request, options, version, make_plan(cube_, request, concrete, heap_base))};
  Chosen chosen = plan_for(request, concrete, heap_base);
  chosen.trial = choice.trial;
  chosen.key = std::move(key);
  return chosen;
}

}  // namespace pidcomm
