// Implements dpu.h: allocates sets, counts their DPUs and iterates over them.
#include <dpu.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <string_view>

#include "api/profile.h"
#include "base/explanation.h"
#include "base/guard.h"
#include "machine/machine.h"
#include "trace/trace.h"

using namespace dpuemu;

dpu_error_t read_profile(const char *profile, uint32_t &sg_max_blocks) {
  bool is_enabled = false;
  uint32_t max_blocks = Machine::kAllDpus;
  std::string_view rest = profile != nullptr ? profile : "";
  const auto trim = [](std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  };
  for (bool has_next = !rest.empty(); has_next;) {
    const size_t end = rest.find(',');
    const std::string_view entry = trim(rest.substr(0, end));
    has_next = end != std::string_view::npos;
    rest = has_next ? rest.substr(end + 1) : "";
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) return DPU_ERR_INVALID_PROFILE;
    const std::string_view key = trim(entry.substr(0, equals)),
                           value = trim(entry.substr(equals + 1));
    const Chip &chip = Machine::instance().chip();
    if (key == "chipId" && value != std::to_string(chip.id))
      return explained(DPU_ERR_INVALID_PROFILE, "chipId is " + std::string(value) +
                                                    "; the machine's chip " +
                                                    std::string(chip.name) + " is " +
                                                    std::to_string(chip.id) + " (DPUEMU_CHIP)");
    if (key == "sgXferEnable") is_enabled = value == "true";
    if (key == "sgXferMaxBlocksPerDpu") {
      const auto [last, error] = std::from_chars(value.begin(), value.end(), max_blocks);
      if (error != std::errc() || last != value.end() || max_blocks == 0)
        return explained(DPU_ERR_INVALID_PROFILE, "sgXferMaxBlocksPerDpu is " + std::string(value) +
                                                      "; it must be a number of at least 1");
    }
  }
  sg_max_blocks = is_enabled ? max_blocks : 0;
  return DPU_OK;
}

namespace {

dpu_error_t allocate(Machine::Unit unit, uint32_t count, const char *profile, dpu_set_t *dpu_set) {
  return guarded([&] {
    if (dpu_set == nullptr) return DPU_ERR_INTERNAL;
    uint32_t sg_max_blocks = 0;
    if (const dpu_error_t status = read_profile(profile, sg_max_blocks); status != DPU_OK)
      return status;
    if (count == 0)
      return explained(DPU_ERR_ALLOCATION, "the call asks for 0; at least 1 is necessary");
    return Machine::instance().allocate(unit, count, sg_max_blocks, *dpu_set);
  });
}

}  // namespace

dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set) {
  return allocate(Machine::Unit::kDpus, nr_dpus, profile, dpu_set);
}

dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set) {
  return allocate(Machine::Unit::kRanks, nr_ranks, profile, dpu_set);
}

dpu_error_t dpu_free(struct dpu_set_t dpu_set) {
  return guarded([&] {
    const dpu_error_t status = Machine::instance().free(dpu_set);
    write_trace();  // the process may end by _exit()
    return status;
  });
}

dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks) {
  return guarded([&] {
    if (nr_ranks == nullptr) return DPU_ERR_INTERNAL;
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status == DPU_OK) *nr_ranks = static_cast<uint32_t>(set.ranks().size());
    return status;
  });
}

dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus) {
  return guarded([&] {
    if (nr_dpus == nullptr) return DPU_ERR_INTERNAL;
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    uint32_t count = 0;
    for (size_t i = 0; i < set.ranks().size(); ++i)
      count += static_cast<uint32_t>(std::popcount(set.members(i)));
    *nr_dpus = set.is_single_dpu() ? 1 : count;
    return DPU_OK;
  });
}

struct dpu_set_rank_iterator_t dpu_set_rank_iterator_from(struct dpu_set_t *set) {
  dpu_set_rank_iterator_t iterator = {set, 0, 1, Machine::instance().is_live(*set), *set};
  if (iterator.has_next && set->kind == DPU_SET_RANKS) iterator.next.list.nr_ranks = 1;
  return iterator;
}

void dpu_set_rank_iterator_next(struct dpu_set_rank_iterator_t *iterator) {
  ++iterator->count;
  iterator->has_next = iterator->has_next && iterator->set->kind == DPU_SET_RANKS &&
                       iterator->next_idx < iterator->set->list.nr_ranks;
  if (iterator->has_next)
    iterator->next.list.ranks = iterator->set->list.ranks + iterator->next_idx++;
}

namespace {

/// Moves to the next enabled DPU: at or after index next_idx of the current rank, or in a later
/// rank.
void find_next_dpu(dpu_set_dpu_iterator_t &iterator) {
  for (; iterator.rank_iterator.has_next;
       dpu_set_rank_iterator_next(&iterator.rank_iterator), iterator.next_idx = 0) {
    dpu_rank_t *rank = *iterator.rank_iterator.next.list.ranks;
    const uint32_t index = Machine::instance().next_enabled(rank, iterator.next_idx);
    if (index == kDpusPerRank) continue;
    iterator.next_idx = index + 1;
    iterator.next.dpu = rank->dpus + index;
    return;
  }
  iterator.has_next = false;
}

}  // namespace

struct dpu_set_dpu_iterator_t dpu_set_dpu_iterator_from(struct dpu_set_t *set) {
  dpu_set_dpu_iterator_t iterator = {dpu_set_rank_iterator_from(set), 0, 0, false, *set};
  iterator.has_next = iterator.rank_iterator.has_next;
  if (set->kind == DPU_SET_RANKS) {
    iterator.next = {};
    iterator.next.kind = DPU_SET_DPU;
    if (iterator.has_next) find_next_dpu(iterator);
  }
  return iterator;
}

void dpu_set_dpu_iterator_next(struct dpu_set_dpu_iterator_t *iterator) {
  ++iterator->count;
  if (iterator->rank_iterator.set->kind != DPU_SET_RANKS)
    iterator->has_next = false;
  else if (iterator->has_next)
    find_next_dpu(*iterator);
}
