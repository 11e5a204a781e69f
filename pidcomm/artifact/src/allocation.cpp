// The published artifact's allocation of complete ranks, and its loop over PEs in the order of a
// hypercube.
#include <pidcomm_artifact.h>

#include <bit>
#include <new>
#include <vector>

#include "geometry.h"
#include "sdk.h"

namespace {

using pidcomm_artifact::kBanks, pidcomm_artifact::kLanes;

constexpr uint32_t kRankDpus = PIDCOMM_PES_PER_RANK;
constexpr uint32_t kAllLanes = (1u << kLanes) - 1;

uint32_t dpus_of(struct dpu_set_t set) {
  uint32_t dpus = 0;
  return dpu_get_nr_dpus(set, &dpus) == DPU_OK ? dpus : 0;
}

struct dpu_t *dpu_at(struct dpu_rank_t *rank, uint32_t bank, uint32_t lane) {
  return dpu_get(rank, static_cast<dpu_slice_id_t>(lane), static_cast<dpu_member_id_t>(bank));
}

/// Returns a mask: bit l is set if lane l of the entangled group is enabled.
uint32_t enabled_lanes(struct dpu_rank_t *rank, uint32_t bank) {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    struct dpu_t *const dpu = dpu_at(rank, bank, lane);
    lanes |= static_cast<uint32_t>(dpu != nullptr && dpu_is_enabled(dpu)) << lane;
  }
  return lanes;
}

/// Whether each entangled group of the set has all its PEs enabled or all disabled.
bool has_whole_egs(struct dpu_set_t set) {
  for (uint32_t rank = 0; rank < set.list.nr_ranks; ++rank) {
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      const uint32_t lanes = enabled_lanes(set.list.ranks[rank], bank);
      if (lanes != 0 && lanes != kAllLanes) return false;
    }
  }
  return true;
}

/// Owns DPU sets of one rank each; the destructor frees them.
class Ranks {
 public:
  ~Ranks() { free(); }
  void add(struct dpu_set_t rank) { sets_.push_back(rank); }
  void reserve_next() { sets_.reserve(sets_.size() + 1); }
  std::size_t count() const { return sets_.size(); }
  void free() {
    for (const struct dpu_set_t &set : sets_) dpu_free(set);
    sets_.clear();
  }

 private:
  std::vector<struct dpu_set_t> sets_;
};

/// Calls dpu_alloc. Returns an error if the DPUs are spread over more ranks than necessary or if an
/// entangled group is incomplete.
dpu_error_t alloc_whole(uint32_t nr_dpus, const char *profile, struct dpu_set_t *set) {
  const dpu_error_t error = dpu_alloc(nr_dpus, profile, set);
  if (error != DPU_OK) return error;
  if (set->list.nr_ranks == (nr_dpus + kRankDpus - 1) / kRankDpus && dpus_of(*set) == nr_dpus &&
      has_whole_egs(*set))
    return DPU_OK;
  dpu_free(*set);
  return DPU_ERR_ALLOCATION;
}

dpu_error_t alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *set) {
  const bool wants_all = nr_dpus == DPU_ALLOCATE_ALL;
  if (!wants_all) {
    const dpu_error_t error = alloc_whole(nr_dpus, profile, set);
    if (error != DPU_ERR_ALLOCATION) return error;
  }
  // dpu_alloc may return incomplete ranks first: keep these until it has returned enough complete
  // ranks.
  Ranks complete, incomplete;
  while (wants_all || complete.count() * kRankDpus < nr_dpus) {
    complete.reserve_next();
    incomplete.reserve_next();
    struct dpu_set_t rank;
    const dpu_error_t error = dpu_alloc_ranks(1, profile, &rank);
    if (error == DPU_ERR_ALLOCATION) break;
    if (error != DPU_OK) return error;
    (dpus_of(rank) == kRankDpus ? complete : incomplete).add(rank);
  }
  if (wants_all) nr_dpus = static_cast<uint32_t>(complete.count()) * kRankDpus;
  if (nr_dpus == 0 || complete.count() * kRankDpus < nr_dpus) return DPU_ERR_ALLOCATION;
  complete.free();
  return alloc_whole(nr_dpus, profile, set);
}

/// How hypercubes use an entangled group, in the order of use (see pidcomm_hypercube_create).
enum class EgUse : uint32_t { whole_in_complete_rank, whole, last, unused, count };

EgUse use_of_eg(const pidcomm_artifact_iterator &it, uint32_t eg) {
  struct dpu_rank_t *const rank = it.set.list.ranks[eg / kBanks];
  if (enabled_lanes(rank, eg % kBanks) == kAllLanes) {
    uint32_t whole = 0;
    while (whole < kBanks && enabled_lanes(rank, whole) == kAllLanes) ++whole;
    return whole == kBanks ? EgUse::whole_in_complete_rank : EgUse::whole;
  }
  return eg == it.last_eg ? EgUse::last : EgUse::unused;
}

/// Returns the first of the incomplete entangled groups that have the most lanes from lane 0 on, or
/// `egs` if no incomplete group has lane 0.
uint32_t last_eg_of(struct dpu_set_t set, uint32_t egs) {
  uint32_t last = egs;
  int most = 0;
  for (uint32_t eg = 0; eg < egs; ++eg) {
    const int lanes = std::countr_one(enabled_lanes(set.list.ranks[eg / kBanks], eg % kBanks));
    if (lanes < static_cast<int>(kLanes) && lanes > most) last = eg, most = lanes;
  }
  return last;
}

/// Moves the iterator to the lowest remaining lane of its entangled group, or else to the next
/// entangled group with lanes. The iterator passes over the set's entangled groups once for each
/// use, so the PEs of hypercubes come first.
void find(pidcomm_artifact_iterator &it) {
  it.has_next = false;
  uint32_t ranks = 0;
  if (it.set.kind != DPU_SET_RANKS || dpu_get_nr_ranks(it.set, &ranks) != DPU_OK) return;
  const uint32_t egs = ranks * kBanks, end = egs * static_cast<uint32_t>(EgUse::count);
  if (it.eg == 0) it.last_eg = last_eg_of(it.set, egs);
  for (; it.lanes == 0 && it.eg < end; ++it.eg)
    if (use_of_eg(it, it.eg % egs) == static_cast<EgUse>(it.eg / egs))
      it.lanes = enabled_lanes(it.set.list.ranks[it.eg % egs / kBanks], it.eg % kBanks);
  if (it.lanes == 0) return;
  const uint32_t eg = (it.eg - 1) % egs, lane = static_cast<uint32_t>(std::countr_zero(it.lanes));
  it.lanes &= it.lanes - 1;
  it.has_next = true;
  it.next = dpu_set_from_dpu(dpu_at(it.set.list.ranks[eg / kBanks], eg % kBanks, lane));
}

}  // namespace

extern "C" {

dpu_error_t pidcomm_artifact_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set,
                                   int type) {
  constexpr int kWithoutEgs = 1;  // omits entangled groups
  const bool is_whole = nr_dpus == DPU_ALLOCATE_ALL || nr_dpus % kRankDpus == 0;
  if (dpu_set == nullptr || nr_dpus == 0 ||
      (!is_whole && (nr_dpus % kLanes != 0 || type != kWithoutEgs)))
    return DPU_ERR_ALLOCATION;
  try {
    return alloc(nr_dpus, profile, dpu_set);
  } catch (const std::bad_alloc &) {
    return DPU_ERR_SYSTEM;
  }
}

pidcomm_artifact_iterator pidcomm_artifact_first(struct dpu_set_t set, uint32_t /* cube_size */) {
  pidcomm_artifact_iterator it{};
  it.set = it.next = set;
  find(it);
  it.has_next |= set.kind == DPU_SET_DPU && dpus_of(set) == 1;
  return it;
}

void pidcomm_artifact_next(pidcomm_artifact_iterator *iterator) {
  ++iterator->count;
  find(*iterator);
}

}  // extern "C"
