#include "machine/machine.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <string>

#include "base/explanation.h"
#include "machine/debugger.h"
#include "machine/machine_settings.h"

namespace dpuemu {

/// The array of the ranks of an allocation, in the page before the pages of these ranks.
struct SetRecord {
  HandleKind kind;
  uint32_t nr_ranks;
  pid_t process;  // that allocated the set
  dpu_rank_t *ranks[DPUEMU_MAX_RANKS];
};

static_assert(sizeof(SetRecord) <= HandleArena::kPageBytes &&
              sizeof(dpu_rank_t) <= HandleArena::kPageBytes);

namespace {

/// Disables one more DPU according to the rule of dpu_alloc, which keeps as many banks (lines) as
/// possible complete.
void disable_one(std::vector<uint64_t> &enabled) {
  size_t target_rank = 0;
  uint32_t target_dpu = 0, most_disabled_in_bank = 0, most_enabled_in_rank = 0;
  for (size_t rank = 0; rank < enabled.size(); ++rank) {
    const auto enabled_in_rank = static_cast<uint32_t>(std::popcount(enabled[rank]));
    if (enabled_in_rank == 1) continue;  // every rank keeps an enabled DPU
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      uint32_t disabled_in_bank = 0, last_enabled_chip = kChips;
      for (uint32_t chip = 0; chip < kChips; ++chip) {
        if (enabled[rank] >> dpu_index(chip, bank) & 1)
          last_enabled_chip = chip;
        else
          ++disabled_in_bank;
      }
      if (last_enabled_chip == kChips) continue;
      if (disabled_in_bank < most_disabled_in_bank) continue;
      if (disabled_in_bank == most_disabled_in_bank && enabled_in_rank < most_enabled_in_rank)
        continue;
      target_rank = rank;
      target_dpu = dpu_index(last_enabled_chip, bank);
      most_disabled_in_bank = disabled_in_bank;
      most_enabled_in_rank = enabled_in_rank;
    }
  }
  enabled[target_rank] &= ~(UINT64_C(1) << target_dpu);
}

/// Returns node 0 if it is the only NUMA node, else unknown: because the first access to a page
/// decides on which node the page is.
int only_numa_node() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string nodes;
  file >> nodes;
  return nodes == "0" ? 0 : -1;
}

uint32_t index_within(const dpu_rank_t *rank, const dpu_t *dpu) {
  return static_cast<uint32_t>(dpu - rank->dpus);
}

}  // namespace

Machine &Machine::instance() {
  static Machine *const forever =
      new Machine;  // never destroyed: job threads may outlive static objects
  return *forever;
}

Machine::Machine() {
  for (uint32_t i = 0; i < DPUEMU_MAX_RANKS; ++i) {
    ranks_[i].set_id(i);
    regions_[i] = &ranks_[i].region();
  }
  numa_node_ = only_numa_node();
  setup_status_ = configure_locked({}, std::nullopt);
}

dpu_error_t Machine::configure_locked(dpuemu_machine_t wanted,
                                      std::optional<std::span<const uint32_t>> disabled) {
  for (const Rank &rank : ranks_)
    if (rank.handle != nullptr)
      return explained(DPU_ERR_ALLOCATION,
                       "rank " + std::to_string(rank.id()) +
                           " is allocated; the machine can change after dpu_free");
  const dpu_error_t status = complete_settings(wanted);
  if (status != DPU_OK) return status;
  const auto from_environment = disabled ? std::nullopt : disabled_from_environment();
  if (!disabled && !from_environment) return DPU_ERR_INVALID_PROFILE;
  const std::span<const uint32_t> absent =
      disabled ? *disabled : std::span<const uint32_t>(*from_environment);
  if (std::any_of(absent.begin(), absent.end(),
                  [&](uint32_t dpu) { return dpu >= wanted.ranks * kDpusPerRank; }))
    return DPU_ERR_INVALID_PROFILE;

  settings_ = wanted;
  std::fill(std::begin(present_), std::end(present_), ~UINT64_C(0));
  for (uint32_t dpu : absent) present_[dpu / kDpusPerRank] &= ~(UINT64_C(1) << dpu % kDpusPerRank);
  threads_ = wanted.threads;
  flush_ = wanted.flush;
  is_strict_ = wanted.strict == kOn;
  patience_seconds_ = wanted.patience_seconds;
  chip_ = wanted.chip;
  if (is_strict_) install_strict_handler(regions_, DPUEMU_MAX_RANKS);
  return DPU_OK;
}

dpu_error_t Machine::configure(const dpuemu_machine_t &wanted,
                               std::optional<std::span<const uint32_t>> disabled) {
  std::lock_guard<std::mutex> lock(mutex_);
  const dpu_error_t status = configure_locked(wanted, disabled);
  if (status == DPU_OK) setup_status_ = DPU_OK;
  return status;
}

dpu_error_t Machine::settings(dpuemu_machine_t &out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (setup_status_ == DPU_OK) out = settings_;
  return setup_status_;
}

dpu_error_t Machine::set_transfer(uint32_t threads, int flush) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (setup_status_ != DPU_OK) return setup_status_;
  dpuemu_machine_t wanted = settings_;
  if (threads != 0) wanted.threads = threads;
  if (flush != 0) wanted.flush = flush;
  const dpu_error_t status = complete_settings(wanted);
  if (status != DPU_OK) return status;
  settings_ = wanted;
  threads_ = wanted.threads;
  flush_ = wanted.flush;
  return DPU_OK;
}

uint64_t Machine::resident_bytes() {
  uint64_t bytes = 0;
  for (const Rank &rank : ranks_) bytes += rank.region().resident_bytes();
  return bytes;
}

std::string Machine::wram_owner(uint64_t address) {
  for (Rank &rank : ranks_)
    if (const uint32_t index = rank.wram_owner(address); index != kDpusPerRank)
      return pe_name(rank.id(), index);
  return {};
}

dpu_error_t Machine::allocate(Unit unit, uint32_t count, uint32_t sg_max_blocks, dpu_set_t &out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (setup_status_ != DPU_OK) return setup_status_;

  std::vector<Rank *> taken;
  std::vector<uint64_t> enabled;
  uint32_t taken_dpus = 0;
  const auto is_enough = [&] {
    return (unit == Unit::kRanks ? taken.size() : taken_dpus) >= count;
  };
  for (uint32_t i = 0; i < settings_.ranks && !is_enough(); ++i) {
    if (ranks_[i].handle != nullptr) continue;
    taken.push_back(&ranks_[i]);
    enabled.push_back(present_[i]);
    taken_dpus += static_cast<uint32_t>(std::popcount(present_[i]));
  }
  if (taken.empty() || (count != DPU_ALLOCATE_ALL && !is_enough())) {
    const std::string wanted = count != DPU_ALLOCATE_ALL ? std::to_string(count) : "all";
    uint32_t dpus = 0;
    for (uint32_t i = 0; i < settings_.ranks; ++i)
      dpus += static_cast<uint32_t>(std::popcount(present_[i]));
    return explained(DPU_ERR_ALLOCATION,
                     "the call asks for " + wanted + (unit == Unit::kRanks ? " ranks" : " DPUs") +
                         "; " + std::to_string(taken_dpus) + " of " + std::to_string(dpus) +
                         " DPUs (" + std::to_string(taken.size()) + " of " +
                         std::to_string(settings_.ranks) + " ranks) are free");
  }
  if (unit == Unit::kDpus && count != DPU_ALLOCATE_ALL)
    for (; taken_dpus > count; --taken_dpus) disable_one(enabled);

  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]->region().map(is_strict())) return DPU_ERR_SYSTEM;
    show_unwritten(is_strict() ? kLeftoverByte : uint8_t{0});
    // If a rank has few enabled DPUs, huge pages would mostly hold zeros of the disabled DPUs.
    const bool is_worth_it = static_cast<uint32_t>(std::popcount(enabled[i])) >= kDpusPerRank / 2;
    taken[i]->region().advise_huge_pages(settings_.hugepages == kOn && is_worth_it);
  }
  auto *pages = static_cast<uint8_t *>(arena_.allocate(taken.size() + 1));
  auto *record =
      new (pages) SetRecord{HandleKind::kSet, static_cast<uint32_t>(taken.size()), getpid(), {}};
  for (size_t i = 0; i < taken.size(); ++i) {
    auto *handle = new (pages + (i + 1) * HandleArena::kPageBytes)
        dpu_rank_t{HandleKind::kRank, taken[i], enabled[i], {}};
    for (uint32_t chip = 0; chip < kChips; ++chip)
      for (uint32_t bank = 0; bank < kBanks; ++bank) {
        const uint32_t index = dpu_index(chip, bank);
        handle->dpus[index] = {static_cast<uint8_t>(chip), static_cast<uint8_t>(bank),
                               &taken[i]->pes[index]};
      }
    record->ranks[i] = handle;
    taken[i]->handle = handle;
    taken[i]->sg_max_blocks = sg_max_blocks == kAllDpus ? taken_dpus : sg_max_blocks;
  }
  out = {};
  out.kind = DPU_SET_RANKS;
  out.list.nr_ranks = record->nr_ranks;
  out.list.ranks = record->ranks;
  return DPU_OK;
}

dpu_error_t Machine::free(const dpu_set_t &set) {
  std::unique_lock<std::mutex> lock(mutex_);
  SetRecord *record = live_record(set);
  if (record == nullptr || set.list.ranks != record->ranks || set.list.nr_ranks != record->nr_ranks)
    return DPU_ERR_INVALID_DPU_SET;
  std::vector<Rank *> ranks;
  for (uint32_t i = 0; i < record->nr_ranks; ++i) ranks.push_back(record->ranks[i]->rank);
  const auto any_rank = [&](auto is_true) {
    return std::any_of(ranks.begin(), ranks.end(), is_true);
  };
  if (any_rank([](Rank *rank) { return CallbackScope::contains(rank); })) return DPU_ERR_INTERNAL;
  const auto any_access = [&] {
    return any_rank([](Rank *rank) { return rank->has_open_access(); });
  };
  const auto set_alive = [&](bool alive) {
    record->kind = alive ? HandleKind::kSet : HandleKind::kRetired;
    for (uint32_t i = 0; i < ranks.size(); ++i)
      record->ranks[i]->kind = alive ? HandleKind::kRank : HandleKind::kRetired;
  };
  const auto wait_until_idle = [&] {
    lock.unlock();
    for (Rank *rank : ranks) rank->wait_until_idle();
    lock.lock();
  };

  // The threads that end the work are in the parent process.
  if (record->process != getpid() && any_rank([](Rank *rank) { return !rank->is_idle(); }))
    return DPU_ERR_MRAM_BUSY;
  wait_until_idle();
  if (record->kind != HandleKind::kSet)
    return DPU_ERR_INVALID_DPU_SET;  // another thread has freed the set
  if (any_access()) return DPU_ERR_MRAM_BUSY;
  set_alive(false);
  unpinned_.wait(lock, [&] { return !any_rank([](Rank *rank) { return rank->pins != 0; }); });
  if (any_access()) {
    set_alive(true);
    return DPU_ERR_MRAM_BUSY;
  }
  wait_until_idle();  // waits for the work of calls that were in progress

  lock.unlock();
  for (Rank *rank : ranks) rank->reset();
  lock.lock();
  for (Rank *rank : ranks) {
    rank->prepared = rank->prepared_in_callback = {};
    rank->handle = nullptr;
  }
  arena_.retire(record, ranks.size() + 1);
  return DPU_OK;
}

dpu_error_t Machine::free_rank(const dpu_rank_t *rank) {
  dpu_set_t set = {};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_rank(rank) == nullptr) return DPU_ERR_INVALID_DPU_SET;
    // The record of an allocation is in the page before its first rank.
    const auto *first = reinterpret_cast<const uint8_t *>(rank) - HandleArena::kPageBytes;
    auto *record = static_cast<SetRecord *>(arena_.page_of(first));
    if (record == nullptr || record->kind != HandleKind::kSet || record->nr_ranks != 1 ||
        record->ranks[0] != rank)
      return DPU_ERR_INVALID_DPU_SET;
    set.list = {1, record->ranks};
  }
  return free(set);
}

dpu_rank_t *Machine::live_rank(const dpu_rank_t *rank) const {
  auto *handle = static_cast<dpu_rank_t *>(arena_.page_of(rank));
  return handle != nullptr && handle == rank && handle->kind == HandleKind::kRank ? handle
                                                                                  : nullptr;
}

dpu_rank_t *Machine::live_rank_of(const dpu_t *dpu) const {
  auto *handle = static_cast<dpu_rank_t *>(arena_.page_of(dpu));
  if (handle == nullptr || handle->kind != HandleKind::kRank || dpu < handle->dpus) return nullptr;
  const uint32_t index = index_within(handle, dpu);
  return index < kDpusPerRank && dpu == handle->dpus + index ? handle : nullptr;
}

SetRecord *Machine::live_record(const dpu_set_t &set) const {
  if (set.kind != DPU_SET_RANKS) return nullptr;
  auto *record = static_cast<SetRecord *>(arena_.page_of(set.list.ranks));
  if (record == nullptr || record->kind != HandleKind::kSet || set.list.ranks < record->ranks)
    return nullptr;
  const auto first = static_cast<uint64_t>(set.list.ranks - record->ranks);
  return first + set.list.nr_ranks <= record->nr_ranks ? record : nullptr;
}

dpu_rank_t *const *Machine::live_ranks(const dpu_set_t &set) const {
  if (set.kind != DPU_SET_RANKS || set.list.ranks == nullptr || set.list.nr_ranks == 0 ||
      set.list.nr_ranks > DPUEMU_MAX_RANKS)
    return nullptr;
  if (arena_.page_of(set.list.ranks) != nullptr)
    return live_record(set) != nullptr ? set.list.ranks : nullptr;
  // The array belongs to the program (dpu_set_from_rank).
  for (uint32_t i = 0; i < set.list.nr_ranks; ++i)
    if (live_rank(set.list.ranks[i]) == nullptr) return nullptr;
  return set.list.ranks;
}

bool Machine::is_live(const dpu_set_t &set) {
  std::lock_guard<std::mutex> lock(mutex_);
  return set.kind == DPU_SET_DPU ? live_rank_of(set.dpu) != nullptr : live_ranks(set) != nullptr;
}

bool Machine::find(const dpu_rank_t *rank, Rank *&out) {
  std::lock_guard<std::mutex> lock(mutex_);
  const dpu_rank_t *handle = live_rank(rank);
  if (handle == nullptr) return false;
  out = handle->rank;
  return true;
}

bool Machine::find(const dpu_t *dpu, dpu_rank_t *&rank, dpu_t &out) {
  std::lock_guard<std::mutex> lock(mutex_);
  rank = live_rank_of(dpu);
  if (rank == nullptr) return false;
  out = *dpu;
  return true;
}

uint32_t Machine::next_enabled(const dpu_rank_t *rank, uint32_t index) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (live_rank(rank) == nullptr || index >= kDpusPerRank) return kDpusPerRank;
  const uint64_t rest = rank->enabled >> index;
  return rest == 0 ? kDpusPerRank : index + static_cast<uint32_t>(std::countr_zero(rest));
}

void Machine::prepare(const PinnedSet &set, uint8_t *buffer) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < set.ranks().size(); ++i) {
    Rank &rank = *set.ranks()[i];
    PreparedBuffers &buffers =
        CallbackScope::contains(&rank) ? rank.prepared_in_callback : rank.prepared;
    for_each_dpu(set.members(i), [&](uint32_t dpu) { buffers.of_dpu[dpu] = buffer; });
  }
}

std::vector<PreparedBuffers> Machine::prepared(const PinnedSet &set) {
  std::vector<PreparedBuffers> out(set.ranks().size());
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < out.size(); ++i) {
    const Rank &rank = *set.ranks()[i];
    const PreparedBuffers &buffers =
        CallbackScope::contains(&rank) ? rank.prepared_in_callback : rank.prepared;
    for_each_dpu(set.members(i), [&](uint32_t dpu) { out[i].of_dpu[dpu] = buffers.of_dpu[dpu]; });
  }
  return out;
}

dpu_error_t PinnedSet::pin(const dpu_set_t &set) {
  Machine &machine = Machine::instance();
  std::lock_guard<std::mutex> lock(machine.mutex_);
  if (set.kind == DPU_SET_DPU) {
    const dpu_rank_t *handle = machine.live_rank_of(set.dpu);
    if (handle == nullptr) return DPU_ERR_INVALID_DPU_SET;
    ranks_[0] = handle->rank;
    members_[0] = handle->enabled & UINT64_C(1) << index_within(handle, set.dpu);
    count_ = 1;
    is_single_dpu_ = true;
  } else {
    dpu_rank_t *const *handles = machine.live_ranks(set);
    if (handles == nullptr) return DPU_ERR_INVALID_DPU_SET;
    for (uint32_t i = 0; i < set.list.nr_ranks; ++i) {
      ranks_[i] = handles[i]->rank;
      members_[i] = handles[i]->enabled;
    }
    count_ = set.list.nr_ranks;
  }
  for (Rank *rank : ranks()) ++rank->pins;
  return DPU_OK;
}

PinnedSet::~PinnedSet() {
  if (count_ != 0) Machine::instance().unpin(ranks());
}

void Machine::unpin(std::span<Rank *const> ranks) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Rank *rank : ranks) --rank->pins;
  unpinned_.notify_all();
}

}  // namespace dpuemu
