#include "exec/placement.h"

#include <array>
#include <bit>
#include <map>
#include <utility>

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

/// An order of entangled groups, of which only the last may lack lanes. A hypercube uses the first
/// `pes` PEs.
struct EgOrder {
  std::vector<PlacedEg> egs;
  std::size_t whole_egs;
  uint32_t pes;
};

/// Returns the order of the set, which does not depend on the hypercube: the complete entangled
/// groups of complete ranks, then those of other ranks, each in the order of ranks, then banks. So
/// the bank pairs of most ranks stay at equal places of the axes, which is faster. The last is the
/// first incomplete group with the most lanes from lane 0 on.
EgOrder order_of(const std::vector<RankDpus> &ranks) {
  EgOrder order{};
  std::vector<PlacedEg> others;
  PlacedEg last{};
  uint32_t last_pes = 0;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    std::vector<PlacedEg> of_rank;
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      const uint32_t lanes = lanes_present(ranks[r].dpu[bank]),
                     first_lanes = static_cast<uint32_t>(std::countr_one(lanes));
      if (lanes == kAllLanes)
        of_rank.push_back({r, bank});
      else if (first_lanes > last_pes)
        last = {r, bank}, last_pes = first_lanes;
    }
    std::vector<PlacedEg> &to = of_rank.size() == kBanks ? order.egs : others;
    to.insert(to.end(), of_rank.begin(), of_rank.end());
  }
  order.egs.insert(order.egs.end(), others.begin(), others.end());
  order.whole_egs = order.egs.size();
  if (last_pes != 0) order.egs.push_back(last);
  order.pes = static_cast<uint32_t>(order.whole_egs) * kLanes + last_pes;
  return order;
}

/// Whether DPU_FOREACH visits the first `end` PEs of the order rank by rank, without a missing PE.
bool is_in_foreach_order(const EgOrder &order, uint64_t end) {
  for (uint32_t eg = 0; eg < end / kLanes; ++eg)
    if (order.egs[eg].rank != eg / kBanks || order.egs[eg].bank != eg % kBanks) return false;
  return true;
}

}  // namespace

Placement Placement::largest(struct dpu_set_t set) {
  uint32_t set_pes = 0;
  check_device(dpu_get_nr_dpus(set, &set_pes), "reading the DPU set");
  const uint32_t pes = order_of(dpus_by_rank(set)).pes;
  return pes == 0 ? Placement{} : of(set, Hypercube::of({pes}), 0);
}

Placement Placement::of(struct dpu_set_t set, const Hypercube &cube, uint32_t first) {
  const uint32_t unit = cube.order == PeOrder::foreach ? kLanes * kBanks : kLanes;
  if (first % unit != 0)
    fail(PIDCOMM_ERR_ARGUMENT, "the first PE (", first, ") of a hypercube must be a multiple of ",
         unit, cube.order == PeOrder::foreach ? " in the order of DPU_FOREACH" : "");
  const uint64_t end = uint64_t{first} + cube.pes;
  const std::string shape =
      cube.to_string() + (first == 0 ? "" : " from PE " + std::to_string(first) + " on");
  uint32_t set_pes = 0;
  check_device(dpu_get_nr_dpus(set, &set_pes), "reading the DPU set");
  const std::vector<RankDpus> ranks = dpus_by_rank(set);
  const EgOrder order = order_of(ranks);
  if (order.pes < end && order.whole_egs * kLanes == set_pes)
    fail(PIDCOMM_ERR_SHAPE, "shape ", shape, " needs ", end, " PEs; the set has ", set_pes, " PEs");
  if (order.pes < end)
    fail(PIDCOMM_ERR_SHAPE, "shape ", shape, " needs ", end, " PEs in whole entangled groups",
         cube.pes % kLanes == 0
             ? std::string()
             : " except the last, which needs chips 0 to " + std::to_string(cube.pes % kLanes - 1),
         "; the set has ", set_pes, " PEs, ", order.whole_egs * kLanes,
         " of them in whole entangled groups", incomplete_egs(ranks));
  if (cube.order == PeOrder::foreach && !is_in_foreach_order(order, end))
    fail(PIDCOMM_ERR_SHAPE, "shape ", shape, " needs every PE of the set up to PE ", end - 1,
         incomplete_egs(ranks));
  Placement placement;
  for (const RankDpus &rank : ranks) placement.ranks.push_back(rank.rank);
  const auto first_eg = order.egs.begin() + first / kLanes;
  placement.egs.assign(first_eg, first_eg + (cube.pes + kLanes - 1) / kLanes);
  for (uint32_t pe = 0; pe < cube.pes; ++pe) {
    placement.places.push_back(cube.place_of(pe));
    const PlacedEg eg = placement.eg_of(pe);
    placement.dpus.push_back(ranks[eg.rank].dpu[eg.bank][placement.lane_of(pe)]);
  }
  return placement;
}

}  // namespace pidcomm
