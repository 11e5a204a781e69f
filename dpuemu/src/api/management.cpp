// Implements dpu_management.h: properties of ranks and DPUs.
#include <dpu_management.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <set>

#include "machine/machine.h"

using namespace dpuemu;

namespace {

constexpr dpu_id_t kNoId = UINT32_MAX;

/// If the DPU is allocated, returns ask(rank handle, dpu), else returns `otherwise`.
template <class Answer, class Ask>
Answer about(const dpu_t *dpu, Answer otherwise, Ask ask) {
  dpu_rank_t *rank;
  dpu_t found;
  return Machine::instance().find(dpu, rank, found) ? ask(rank, found) : otherwise;
}

/// The ranks whose locks are taken. Addresses of ranks are never reused. Never destroyed, because
/// threads may outlive static objects.
std::mutex locks;
auto &lock_is_free = *new std::condition_variable;
auto &locked_ranks = *new std::set<const dpu_rank_t *>;

}  // namespace

void dpu_lock_rank(struct dpu_rank_t *rank) {
  std::unique_lock lock(locks);
  lock_is_free.wait(lock, [&] { return locked_ranks.insert(rank).second; });
}

int dpu_trylock_rank(struct dpu_rank_t *rank) {
  const std::lock_guard lock(locks);
  return locked_ranks.insert(rank).second ? 0 : EBUSY;
}

void dpu_unlock_rank(struct dpu_rank_t *rank) {
  const std::lock_guard lock(locks);
  locked_ranks.erase(rank);
  lock_is_free.notify_all();
}

struct dpu_iterator_t dpu_iterator_from(struct dpu_rank_t *rank) {
  dpu_iterator_t iterator = {rank, UINT32_MAX, 0, true, nullptr};
  dpu_iterator_next(&iterator);
  return iterator;
}

void dpu_iterator_next(struct dpu_iterator_t *iterator) {
  const uint32_t index = Machine::instance().next_enabled(iterator->rank, iterator->next_idx);
  ++iterator->count;
  iterator->has_next = index != kDpusPerRank;
  iterator->next_idx = index + 1;
  iterator->next = iterator->has_next ? iterator->rank->dpus + index : nullptr;
}

struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id) {
  Rank *found;
  if (slice_id >= kChips || dpu_id >= kBanks || !Machine::instance().find(rank, found))
    return nullptr;
  return rank->dpus + dpu_index(slice_id, dpu_id);
}

dpu_id_t dpu_get_id(struct dpu_t *dpu) {
  return about(dpu, kNoId, [](dpu_rank_t *rank, const dpu_t &d) {
    return dpu_get_rank_id(rank) << 16 | dpu_id_t{d.chip} << 8 | d.bank;
  });
}

dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank) {
  Rank *found;
  return Machine::instance().find(rank, found) ? found->id() : kNoId;
}

int dpu_get_rank_numa_node(struct dpu_rank_t *rank) {
  Rank *found;
  return Machine::instance().find(rank, found) ? Machine::instance().numa_node() : -1;
}

struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu) {
  return about(dpu, static_cast<dpu_rank_t *>(nullptr),
               [](dpu_rank_t *rank, const dpu_t &) { return rank; });
}

dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu) {
  return about(dpu, dpu_slice_id_t{UINT8_MAX}, [](dpu_rank_t *, const dpu_t &d) { return d.chip; });
}

dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu) {
  return about(dpu, dpu_member_id_t{UINT8_MAX},
               [](dpu_rank_t *, const dpu_t &d) { return d.bank; });
}

bool dpu_is_enabled(struct dpu_t *dpu) {
  return about(dpu, false, [](const dpu_rank_t *rank, const dpu_t &d) {
    return (rank->enabled >> dpu_index(d.chip, d.bank) & 1) != 0;
  });
}

struct dpu_set_t dpu_set_from_rank(struct dpu_rank_t **rank) {
  dpu_set_t set = {};
  set.kind = DPU_SET_RANKS;
  set.list.nr_ranks = 1;
  set.list.ranks = rank;
  return set;
}

struct dpu_set_t dpu_set_from_dpu(struct dpu_t *dpu) {
  dpu_set_t set = {};
  set.kind = DPU_SET_DPU;
  set.dpu = dpu;
  return set;
}

struct dpu_rank_t *dpu_rank_from_set(struct dpu_set_t set) {
  return set.kind == DPU_SET_RANKS && set.list.nr_ranks == 1 && Machine::instance().is_live(set)
             ? set.list.ranks[0]
             : nullptr;
}

struct dpu_t *dpu_from_set(struct dpu_set_t set) {
  return set.kind == DPU_SET_DPU && Machine::instance().is_live(set) ? set.dpu : nullptr;
}
