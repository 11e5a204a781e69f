// Runs of a PE in other orders of its tasklets.
#include <bit>

#include "check/pe_check.h"

namespace dpuemu {

void PeCheck::explore(Explorer *explorer) {
  is_exploring_ = true;
  explorer_ = explorer;
}

void PeCheck::stop_exploring() {
  is_exploring_ = are_states_frozen_ = false;
  explorer_ = nullptr;
  users_.clear();
  shared_cells_.clear();
  observations_.clear();
}

/// Calls act(number) for each cell: bytes of WRAM, words of 8 bytes of MRAM.
template <class Act>
void PeCheck::for_each_cell(const Cell &first, uint32_t bytes, Act act) {
  constexpr uint64_t kMram = UINT64_C(1) << 32;
  if (first.is_mram)
    for (uint32_t word = first.address / 8; 8 * word < first.address + bytes; ++word)
      act(kMram | word);
  else
    for (uint32_t i = 0; i < bytes; ++i) act(uint64_t{first.address + i});
}

void PeCheck::note_users(const Cell &first, uint32_t bytes, bool is_write) {
  const uint32_t own = 1u << tasklet_;
  for_each_cell(first, bytes, [&](uint64_t cell) {
    if (!first.is_mram && cell >= wram_bytes_) return;
    Users &users = users_[cell];
    users.all |= own;
    if (is_write) users.writers |= own;
    if (users.writers != 0 && !std::has_single_bit(users.all))
      has_found_cells_ |= shared_cells_.insert(cell).second;
  });
}

bool PeCheck::is_shared(const Cell &first, uint32_t bytes) const {
  bool is_any = false;
  for_each_cell(first, bytes,
                [&](uint64_t cell) { is_any = is_any || shared_cells_.contains(cell); });
  return is_any;
}

void PeCheck::note_step(const Access &access) {
  const auto note = [&](uint32_t address, bool is_write) {
    const Cell first = cell_of(address);
    // Direct accesses to MRAM have no contents here: their page may not be loaded yet.
    note_step(first, access.bytes, is_write, outer(tasklet_, access.place),
              first.is_mram ? nullptr : reinterpret_cast<const uint8_t *>(uintptr_t{address}));
  };
  if (access.copied_from != 0) note(access.copied_from, false);
  note(access.address, access.kind.is_write);
}

void PeCheck::note_step(const Cell &first, uint32_t bytes, bool is_write, uint32_t place,
                        const uint8_t *contents) {
  bool is_any = false;
  for_each_cell(first, bytes, [&](uint64_t cell) {
    if (!shared_cells_.contains(cell)) return;
    is_any = true;
    if (explorer_ != nullptr) explorer_->note({cell, is_write, true});
  });
  if (!is_any) return;
  if (is_write) return last_reads_[tasklet_].clear();
  uint64_t value = 0;
  for (uint32_t i = 0; contents != nullptr && i < bytes; ++i)
    value = bytes <= 8 ? value | uint64_t{contents[i]} << (8 * i)
                       : (value ^ contents[i]) * UINT64_C(0x100000001B3);
  observations_.push_back({tasklet_, place, first, value});
  // The tasklet reads the same value again: it waits for a store, so others shall run.
  const uint64_t key = uint64_t{place} << 32 | first.address << 1 | first.is_mram;
  const auto [last, is_new] = last_reads_[tasklet_].try_emplace(key, value);
  const bool waits = !is_new && std::exchange(last->second, value) == value;
  if (waits && explorer_ != nullptr) explorer_->note_waiting(tasklet_);
}

void PeCheck::report_difference(const std::vector<Observation> &earlier,
                                const std::vector<Observation> &last, const std::string &how) {
  std::vector<const Observation *> of_tasklet[PE_MAX_TASKLETS];
  for (const Observation &one : earlier) of_tasklet[one.tasklet].push_back(&one);
  size_t next[PE_MAX_TASKLETS] = {};
  const Observation *found = nullptr, *before = nullptr;
  for (const Observation &one : last) {
    const auto &own = of_tasklet[one.tasklet];
    before = next[one.tasklet] < own.size() ? own[next[one.tasklet]] : nullptr;
    ++next[one.tasklet];
    if (before != nullptr && before->place == one.place && before->value == one.value) continue;
    found = &one;
    break;
  }
  report(FindingKind::kSchedule, found != nullptr ? found->place : 0, 0, [&] {
    Finding finding{.detail = how};
    if (found == nullptr) return finding;
    finding.object = name_of(found->cell);
    const bool is_same_place = before != nullptr && before->place == found->place;
    finding.now = side(found->tasklet,
                       is_same_place ? "reads " + std::to_string(found->value) + " instead of " +
                                           std::to_string(before->value)
                                     : "comes here",
                       found->place);
    if (before != nullptr && !is_same_place)
      finding.before = side(found->tasklet, "comes here in the first run", before->place);
    return finding;
  });
  reported_.clear();
}

}  // namespace dpuemu
