#include "exec/placement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/error.h"
#include "exec/device.h"

namespace pidcomm {

namespace {

constexpr uint32_t kAllLanes = (1u << kLanes) - 1;

struct RankDpus {
  struct dpu_rank_t *rank;
  std::array<std::array<struct dpu_t *, kLanes>, kBanks>
      dpu;  // null if the set has no DPU at this chip and bank
};

std::vector<RankDpus> dpus_by_rank(struct dpu_set_t set) {
  std::vector<RankDpus> ranks;
  std::map<struct dpu_rank_t *, std::size_t> index;
  struct dpu_set_t dpu_set;
  DPU_FOREACH(set, dpu_set) {
    struct dpu_t *dpu = dpu_from_set(dpu_set);
    const auto [entry, is_new] = index.try_emplace(dpu_get_rank(dpu), ranks.size());
    if (is_new) ranks.push_back({dpu_get_rank(dpu), {}});
    ranks[entry->second].dpu[dpu_get_member_id(dpu)][dpu_get_slice_id(dpu)] = dpu;
  }
  return ranks;
}

uint32_t lanes_present(const std::array<struct dpu_t *, kLanes> &bank) {
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    lanes |= static_cast<uint32_t>(bank[lane] != nullptr) << lane;
  return lanes;
}

/// Returns text such as "; rank 0 bank 3 lacks chip 2, chip 5" for every incomplete entangled
/// group.
std::string incomplete_egs(const std::vector<RankDpus> &ranks) {
  std::ostringstream text;
  for (const RankDpus &rank : ranks) {
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      const uint32_t lanes = lanes_present(rank.dpu[bank]);
      if (lanes == kAllLanes) continue;
      text << "; rank " << dpu_get_rank_id(rank.rank) << " bank " << bank << " lacks";
      if (lanes == 0) text << " every chip";
      for (uint32_t lane = 0, listed = 0; lane < kLanes && lanes != 0; ++lane)
        if ((lanes >> lane & 1) == 0) text << (listed++ == 0 ? " chip " : ", chip ") << lane;
    }
  }
  return text.str();
}

/// Returns the complete entangled groups of the set: those of complete ranks, then those of other
/// ranks, each in the order of ranks, then banks. So the bank pairs of most ranks stay at equal
/// places of the axes, which is faster; and smaller hypercubes have the same numbers.
std::vector<PlacedEg> complete_egs(const std::vector<RankDpus> &ranks) {
  std::vector<PlacedEg> egs, others;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    std::vector<PlacedEg> of_rank;
    for (uint32_t bank = 0; bank < kBanks; ++bank)
      if (lanes_present(ranks[r].dpu[bank]) == kAllLanes) of_rank.push_back({r, bank});
    std::vector<PlacedEg> &to = of_rank.size() == kBanks ? egs : others;
    to.insert(to.end(), of_rank.begin(), of_rank.end());
  }
  egs.insert(egs.end(), others.begin(), others.end());
  return egs;
}

}  // namespace

EgUse use_of_eg(uint32_t lanes, uint32_t pes) {
  if (lanes == kAllLanes) return EgUse::whole;
  const uint32_t last_lanes = (1u << pes % kLanes) - 1;
  return last_lanes != 0 && (lanes & last_lanes) == last_lanes ? EgUse::last : EgUse::unused;
}

Placement Placement::largest(struct dpu_set_t set) {
  uint32_t set_pes = 0;
  check_device(dpu_get_nr_dpus(set, &set_pes), "reading the DPU set");
  uint32_t whole_egs = 0, last_pes = 0;  // of all incomplete entangled groups, the most PEs
  for (const RankDpus &rank : dpus_by_rank(set))
    for (const auto &bank : rank.dpu) {
      const uint32_t lanes = lanes_present(bank);
      if (lanes == kAllLanes)
        ++whole_egs;
      else
        last_pes = std::max(last_pes, static_cast<uint32_t>(std::countr_one(lanes)));
    }
  const uint32_t pes = whole_egs * kLanes + last_pes;
  return pes == 0 ? Placement{} : of(set, Hypercube::of({pes}));
}

Placement Placement::of(struct dpu_set_t set, const Hypercube &cube) {
  uint32_t set_pes = 0;
  check_device(dpu_get_nr_dpus(set, &set_pes), "reading the DPU set");
  const std::vector<RankDpus> ranks = dpus_by_rank(set);
  const std::size_t egs_needed = (cube.pes + kLanes - 1) / kLanes;
  Placement placement;
  for (const RankDpus &rank : ranks) placement.ranks.push_back(rank.rank);
  placement.egs = complete_egs(ranks);
  const std::size_t whole_egs = placement.egs.size();
  if (whole_egs > egs_needed) placement.egs.resize(egs_needed);
  for (uint32_t r = 0; r < ranks.size() && placement.egs.size() + 1 == egs_needed; ++r)
    for (uint32_t bank = 0; bank < kBanks && placement.egs.size() < egs_needed; ++bank)
      if (use_of_eg(lanes_present(ranks[r].dpu[bank]), cube.pes) == EgUse::last)
        placement.egs.push_back({r, bank});
  if (placement.egs.size() < egs_needed)
    fail(PIDCOMM_ERR_SHAPE, "shape ", cube.to_string(), " needs ", cube.pes,
         " PEs in whole entangled groups",
         cube.pes % kLanes == 0
             ? std::string()
             : " except the last, which needs chips 0 to " + std::to_string(cube.pes % kLanes - 1),
         "; the set has ", set_pes, " PEs, ", whole_egs * kLanes,
         " of them in whole entangled groups", incomplete_egs(ranks));
  for (const PlacedEg &eg : placement.egs)
    for (uint32_t lane = 0; lane < kLanes && placement.dpus.size() < cube.pes; ++lane)
      placement.dpus.push_back(ranks[eg.rank].dpu[eg.bank][lane]);
  return placement;
}

}  // namespace pidcomm
