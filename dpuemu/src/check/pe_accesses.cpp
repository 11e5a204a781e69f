// Accesses of tasklets to WRAM.
#include <algorithm>

#include "check/pe_check.h"

namespace dpuemu {
namespace {

/// The most accesses to other volatile variables between the read and the write of one statement,
/// such as ++counter.
constexpr uint32_t kMostBetween = 1;

}  // namespace

bool PeCheck::wait_before(const Access &access, bool waits) {
  if (is_exploring_) {
    accesses_left_ = 1;
    ++explored_accesses_[tasklet_];
    const Cell cell = cell_of(access.address);
    const Cell source = cell_of(access.copied_from);
    note_users(cell, access.bytes, access.kind.is_write);
    if (access.copied_from != 0) note_users(source, access.bytes, false);
    const bool is_visible =
        explorer_ != nullptr && (is_shared(cell, access.bytes) ||
                                 (access.copied_from != 0 && is_shared(source, access.bytes)));
    if (!waits && !is_visible) {
      if (explorer_ == nullptr && are_states_frozen_) note_step(access);
      note_access(access);
      return false;
    }
    if (waits && explorer_ != nullptr) explorer_->note_waiting(tasklet_);
  }
  delayed_[tasklet_] = access;
  return true;
}

bool PeCheck::access_volatile(uint32_t address, uint32_t bytes, bool is_write, uint32_t place) {
  const Access access = {address, bytes, {is_write, true}, place, false};
  const VolatileRead &last = volatile_reads_[tasklet_];
  // A loop that waits for a store reads the same variable again.
  const bool waits = !is_write && last.address == address && last.place == place;
  if (--accesses_left_ == 0 || waits) return wait_before(access, waits);
  note_access(access);
  return false;
}

bool PeCheck::access_range(uint32_t address, uint32_t bytes, bool is_write, uint32_t place) {
  const Access access = {address, bytes, {is_write, false}, place, true};
  if (--accesses_left_ == 0) return wait_before(access, false);
  note_access(access);
  return false;
}

void PeCheck::note_access(const Access &now) {
  if (now.copied_from != 0) return note_copy(now);
  const auto [address, bytes, kind, place, is_range, copied_from] = now;
  const uint32_t at = address - wram_, from = outer(tasklet_, place);
  if (at >= wram_bytes_ || bytes > wram_bytes_ - at) {
    if (address < PE_MRAM_ORIGIN + PE_MRAM_BYTES)  // no WRAM is there (low_memory.h)
      access_mram(address & (PE_MRAM_BYTES - 1), bytes, kind, from, false);
    else
      note_depth(reinterpret_cast<uint64_t>(__builtin_frame_address(0)), from);
    return;
  }
  if (!followed_.empty()) end_following(at, bytes, !kind.is_write);
  if (is_range) return note_range(at, bytes, kind.is_write, from);
  check_states(at, bytes, kind, from, false);
  PlaceWord word = from;
  VolatileRead &last = volatile_reads_[tasklet_];
  const VectorClock &clock = clocks_[tasklet_];
  if (kind.is_volatile) {
    word |= kVolatilePlace;
    if (!kind.is_write) {
      last = {address,           place,          clock.has(writes_[at]), writes_[at],
              write_places_[at], access_number()};
      acquire(tasklet_, Lock::kVolatile, at);
    } else if (last.address == address && !last.was_ordered &&
               access_number() - last.number <= kMostBetween + 1 &&
               function_at(from) == function_at(outer(tasklet_, last.place))) {
      // The statement reads the variable and writes it: another tasklet may write in between.
      const CellAccess access = {at, at + bytes, clock, epoch_, from};
      race(FindingKind::kRace, {false, at}, access, true, last.write,
           last.write_place & ~kVolatilePlace, true);
    }
  }
  const CellAccess access = {at, at + bytes, clock, epoch_, word};
  const auto conflict = [&, writes = kind.is_write](uint32_t cell, Epoch epoch, PlaceWord earlier,
                                                    bool was_write) {
    if ((word & earlier & kVolatilePlace) != 0) return;
    race(FindingKind::kRace, {false, cell}, access, writes, epoch, earlier, was_write);
  };
  kind.is_write ? note_write(wram_cells(), shared_, access, conflict)
                : note_read(wram_cells(), shared_, access, conflict);
  if (kind.is_volatile && kind.is_write) {
    last = {};
    release(tasklet_, Lock::kVolatile, at);
  }
}

void PeCheck::note_range(uint32_t at, uint32_t bytes, bool is_write, uint32_t place) {
  check_states(at, bytes, {is_write, false}, place, true);
  const CellAccess access = {at, at + bytes, clocks_[tasklet_], epoch_, place};
  const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
    race(FindingKind::kRace, {false, cell}, access, is_write, epoch, earlier, was_write);
  };
  is_write ? note_write(wram_cells(), shared_, access, conflict)
           : note_read(wram_cells(), shared_, access, conflict);
}

bool PeCheck::copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t place) {
  if (bytes == 0) return false;
  const Access access = {to, bytes, {true, false}, place, true, from};
  if (--accesses_left_ == 0) return wait_before(access, false);
  note_copy(access);
  return false;
}

void PeCheck::note_copy(const Access &access) {
  const uint32_t to = access.address, from = access.copied_from, bytes = access.bytes;
  const uint32_t source = from - wram_, target = to - wram_;
  const auto is_wram = [&](uint32_t at) { return at < wram_bytes_ && bytes <= wram_bytes_ - at; };
  std::vector<uint8_t> states(bytes, CheckedMemory::kDefined);
  if (is_wram(source)) {
    if (!followed_.empty()) end_following(source, bytes, true);
    std::copy_n(memory_->wram + source, bytes, states.begin());
    // An allocator that moves a block copies also bytes that have no value.
    if (runtime_depth_[tasklet_] > 1)
      std::fill_n(memory_->wram + source, bytes, uint8_t{CheckedMemory::kDefined});
    note_access({from, bytes, {false, false}, access.place, true});
    std::copy_n(states.begin(), bytes, memory_->wram + source);
  }
  if (!is_wram(target)) return;
  note_access({to, bytes, {true, false}, access.place, true});
  if (are_states_frozen_) return;
  for (uint32_t i = 0; i < bytes; ++i)
    if (states[i] == CheckedMemory::kNever || states[i] == CheckedMemory::kEarlier ||
        states[i] == CheckedMemory::kCopied || states[i] == CheckedMemory::kMoved)
      memory_->wram[target + i] = states[i];
}

PeCheck::Cell PeCheck::cell_of(uint32_t address) const {
  const uint32_t at = address - wram_;
  return at < wram_bytes_ || address >= PE_MRAM_ORIGIN + PE_MRAM_BYTES
             ? Cell{false, at}
             : Cell{true, address & (PE_MRAM_BYTES - 1)};
}

/// Reports bytes of WRAM without a value, and defines written bytes. is_copy: report only if all
/// bytes lack a value, because structures have padding.
void PeCheck::check_states(uint32_t at, uint32_t bytes, AccessKind kind, uint32_t place,
                           bool is_copy) {
  if (are_states_frozen_) return;
  if (program_->is_checked()) {
    uint8_t *const states = memory_->wram + at;
    const auto is_bad = [&](uint8_t state) {
      return kind.is_write ? (state & (CheckedMemory::kUnallocated | CheckedMemory::kFreed)) != 0
                           : state != CheckedMemory::kDefined;
    };
    const auto *const bad = std::find_if(states, states + bytes, is_bad);
    if (bad != states + bytes && (!is_copy || std::all_of(states, states + bytes, is_bad))) {
      const auto cell = static_cast<uint32_t>(bad - memory_->wram);
      const uint8_t state = *bad;
      const bool is_earlier_launch =
          (state & CheckedMemory::kEarlier) != 0 && (writes_[cell] & kTimeMask) <= time_;
      const FindingKind found = (state & CheckedMemory::kFreed) != 0         ? FindingKind::kFreed
                                : (state & CheckedMemory::kUnallocated) != 0 ? FindingKind::kObject
                                : (state & CheckedMemory::kMoved) != 0       ? FindingKind::kMoved
                                : is_earlier_launch ? FindingKind::kLeftover
                                                    : FindingKind::kUninitialised;
      report(found, place, write_places_[cell], [&] {
        Side before;
        if (found == FindingKind::kFreed && writes_[cell] != 0)
          before = side(thread_of(writes_[cell]), "freed it", write_places_[cell]);
        if ((state & (CheckedMemory::kCopied | CheckedMemory::kMoved)) != 0)
          before = side(thread_of(writes_[cell]),
                        (state & CheckedMemory::kMoved) != 0
                            ? "copied it from MRAM"
                            : "copied it from MRAM that nothing has written",
                        write_places_[cell]);
        return Finding{
            .object = wram_name(cell),
            .now = side(tasklet_, kind.is_write ? "writes it" : "reads it", place),
            .before = before,
            .detail = found == FindingKind::kObject ? "The heap ends before this address." : ""};
      });
      if (!kind.is_write) std::fill(states, states + bytes, uint8_t{CheckedMemory::kDefined});
    }
  }
  if (kind.is_write) std::fill_n(memory_->wram + at, bytes, uint8_t{CheckedMemory::kDefined});
}

}  // namespace dpuemu
