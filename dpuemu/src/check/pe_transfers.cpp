// Accesses of tasklets to MRAM, and DMA.
#include <algorithm>

#include "check/pe_check.h"

namespace dpuemu {

void PeCheck::access_mram(uint32_t offset, uint32_t bytes, AccessKind kind, uint32_t place,
                          bool is_dma) {
  if (kind.is_write && !is_dma && !are_states_frozen_) memory_->define_mram(offset, bytes);
  const PlaceWord word = place | (is_dma ? kDmaPlace : 0);
  for (uint32_t end = std::min(offset + bytes, uint32_t{PE_MRAM_BYTES}); offset < end;) {
    const uint32_t page = offset / kPageBytes,
                   page_end = std::min<uint32_t>(end, (page + 1) * kPageBytes);
    MramCells &cells = mram_cells(page);
    const uint32_t first = offset % kPageBytes / 8, last = (page_end - 1) % kPageBytes / 8 + 1;
    const auto bytes_of = [&](uint32_t cell) {
      const uint32_t begin = page * kPageBytes + 8 * cell;
      const uint32_t from = std::max(offset, begin) - begin,
                     to = std::min(page_end, begin + 8) - begin;
      return static_cast<uint8_t>(is_dma ? 0xFF : (0xFF << from) & (0xFF >> (8 - to)));
    };
    const CellAccess all = {first, last, clocks_[tasklet_], epoch_, word};
    const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
      const uint32_t at = page * kPageBytes + 8 * cell;
      if ((bytes_of(cell) & (was_write ? cells.written_bytes : cells.read_bytes)[cell]) == 0)
        return;
      const FindingKind found =
          is_dma ? kind_of_conflict(thread_of(epoch), at) : FindingKind::kRace;
      const PlaceWord read = !kind.is_write ? word : !was_write ? earlier : 0;
      if ((read & kDmaPlace) == 0 || (read & kUsedPlace) != 0)
        return race(found, {true, at}, all, kind.is_write, epoch, earlier, was_write);
      if (followed_places_.insert(read).second)
        doubts_.push_back(
            {found, {true, at}, epoch_, word, kind.is_write, epoch, earlier, was_write});
    };
    if (kind.is_write && !followed_.empty())
      for (uint32_t cell = first; cell < last; ++cell)
        note_write_of_followed(page * (kPageBytes / 8) + cell, word);
    const Cells view = {cells.writes, cells.reads, cells.write_places, cells.read_places};
    // The cells of a direct access may differ in the bytes that were used.
    for (uint32_t cell = first, next; cell < last; cell = next) {
      next = is_dma ? last : cell + 1;
      const CellAccess access = {cell, next, all.clock, epoch_, word};
      const Epoch write = cells.writes[cell], read = cells.reads[cell];
      kind.is_write ? note_write(view, shared_, access, conflict)
                    : note_read(view, shared_, access, conflict);
      if (is_dma) {
        std::fill(cells.read_bytes + cell, cells.read_bytes + next, uint8_t{0xFF});
        if (kind.is_write)
          std::fill(cells.written_bytes + cell, cells.written_bytes + next, uint8_t{0xFF});
      } else if (kind.is_write) {
        if (write != epoch_) cells.written_bytes[cell] = 0;
        cells.written_bytes[cell] |= bytes_of(cell);
        cells.read_bytes[cell] = 0;
      } else {
        const bool is_ordered = !SharedReads::is_shared(read) && all.clock.has(read);
        if (is_ordered && read != epoch_) cells.read_bytes[cell] = 0;
        cells.read_bytes[cell] |= bytes_of(cell);
      }
    }
    offset = page_end;
  }
}

PeCheck::MramCells &PeCheck::mram_cells(uint32_t page) {
  auto &cells = mram_[page];
  if (cells == nullptr) cells = std::make_unique<MramCells>();
  return *cells;
}

/// Returns the kind of a conflict of DMA with an access of `other` to a word of MRAM: the other one
/// may be a DMA that has not ended.
FindingKind PeCheck::kind_of_conflict(uint32_t other, uint32_t offset) const {
  const bool is_in_flight = other < PE_MAX_TASKLETS && in_flight_[other].bytes != 0 &&
                            offset - in_flight_[other].offset < in_flight_[other].bytes;
  return is_in_flight ? FindingKind::kOverlap : FindingKind::kRace;
}

void PeCheck::follow(uint32_t offset, uint32_t at, uint32_t bytes, PlaceWord place) {
  for (uint32_t i = 0; i < bytes; i += 8) {
    const uint32_t word = (offset + i) / 8, granule = (at + i) / 8;
    const MramCells &cells = mram_cells(word / (kPageBytes / 8));
    const uint32_t cell = word % (kPageBytes / 8);
    const Epoch write = cells.writes[cell];
    fresh_[granule] = {word + 1, epoch_, place, false, FindingKind::kRace, 0, 0};
    if (!clocks_[tasklet_].has(write)) {
      fresh_[granule].is_raced = true;
      fresh_[granule].kind = kind_of_conflict(thread_of(write), 8 * word);
      fresh_[granule].other = write;
      fresh_[granule].other_place = cells.write_places[cell];
    }
    followed_.emplace(word, granule);
    for (uint32_t j = 8 * granule; j < 8 * granule + 8; ++j)
      memory_->wram[j] |= CheckedMemory::kFresh;
  }
}

void PeCheck::note_write_of_followed(uint32_t word, PlaceWord place) {
  const auto [first, last] = followed_.equal_range(word);
  for (auto entry = first; entry != last; ++entry) {
    Fresh &fresh = fresh_[entry->second];
    if (fresh.is_raced || clocks_[tasklet_].has(fresh.epoch)) continue;
    fresh.is_raced = true;
    fresh.kind = kind_of_conflict(thread_of(fresh.epoch), 8 * word);
    fresh.other = epoch_;
    fresh.other_place = place;
  }
}

void PeCheck::end_following(uint32_t at, uint32_t bytes, bool is_used) {
  for (uint32_t granule = at / 8; 8 * granule < at + bytes; ++granule) {
    Fresh &fresh = fresh_[granule];
    if (fresh.word == 0) continue;
    uint32_t left = 0;  // bytes that remain followed
    bool is_any = false;
    for (uint32_t i = 8 * granule; i < 8 * granule + 8; ++i) {
      if ((memory_->wram[i] & CheckedMemory::kFresh) == 0) continue;
      i >= at &&i < at + bytes ? void(is_any = true) : void(++left);
    }
    if (is_used ? !is_any : left != 0) {
      for (uint32_t i = std::max(at, 8 * granule); i < std::min(at + bytes, 8 * granule + 8); ++i)
        memory_->wram[i] &= static_cast<uint8_t>(~CheckedMemory::kFresh);
      continue;
    }
    const uint32_t word = fresh.word - 1;
    const auto [first, last] = followed_.equal_range(word);
    followed_.erase(
        std::find_if(first, last, [&](auto &entry) { return entry.second == granule; }));
    for (uint32_t i = 8 * granule; i < 8 * granule + 8; ++i)
      memory_->wram[i] &= static_cast<uint8_t>(~CheckedMemory::kFresh);
    const CellAccess access = {word % (kPageBytes / 8), word % (kPageBytes / 8) + 1,
                               clocks_[tasklet_], fresh.epoch, fresh.place | kUsedPlace};
    if (is_used) {
      MramCells &cells = mram_cells(word / (kPageBytes / 8));
      note_read({cells.writes, cells.reads, cells.write_places, cells.read_places}, shared_, access,
                [](uint32_t, Epoch, PlaceWord, bool) {});
      cells.read_bytes[word % (kPageBytes / 8)] = 0xFF;
      if (fresh.is_raced)
        race(fresh.kind, {true, 8 * word}, access, false, fresh.other, fresh.other_place, true);
    } else if (fresh.is_raced) {
      unused_places_.insert(fresh.place);
    }
    fresh.word = 0;
  }
}

// --- DMA

void PeCheck::transfer(uint32_t tasklet, uint32_t offset, uint32_t wram, uint32_t bytes,
                       bool is_read, bool is_direct, bool is_rounded, uint32_t place) {
  tasklet_ = tasklet;
  tick(tasklet);
  const uint32_t from = outer(tasklet, place);
  const char *const name = is_read ? "mram_read" : "mram_write";
  if (is_rounded)
    report(FindingKind::kRounded, from, 0, [&] {
      return Finding{.object = mram_name(offset),
                     .now = side(tasklet, std::string("calls ") + name, from),
                     .detail = "It moves " + std::to_string(bytes) + " bytes."};
    });
  const uint32_t at = wram - wram_;
  const bool is_in_wram = at < wram_bytes_ && bytes <= wram_bytes_ - at;
  if (is_in_wram && !followed_.empty()) end_following(at, bytes, !is_read);
  bool is_followed = false;
  if (is_read && is_in_wram) {
    uint32_t &readers = readers_[from];
    is_followed = (readers >> tasklet & 1) == 0 || followed_places_.contains(from | kDmaPlace);
    readers |= 1u << tasklet;
  }
  // mram_unaligned.h changes a part of a word, under a lock of the word.
  const bool is_part_of_word = word_buffer_ != 0 && at - word_buffer_ < 8 * PE_MAX_TASKLETS;
  if (!is_followed && !is_part_of_word)
    access_mram(offset, bytes, {!is_read, false}, is_in_wram ? from : from | kUsedPlace, true);
  in_flight_[tasklet] = {offset, bytes};
  if (is_exploring_) {
    note_users({true, offset}, bytes, !is_read);
    note_users(cell_of(wram), bytes, is_read);
    if (are_states_frozen_) {
      const auto *const contents = reinterpret_cast<const uint8_t *>(uintptr_t{wram});
      note_step({true, offset}, bytes, !is_read, from, contents);
      note_step(cell_of(wram), bytes, is_read, from, contents);
    }
  }
  // Functions of the runtime (seqread, mram_unaligned) read the words around.
  if (!are_states_frozen_ && runtime_depth_[tasklet] == 0)
    check_variable(offset, bytes, name, from);
  if (!is_in_wram) {  // on a stack
    if (!is_read && !are_states_frozen_) memory_->define_mram(offset, bytes);
    return;
  }
  if (!are_states_frozen_) {
    check_object(at, bytes, name, from);
    check_freed(at, bytes, name, from);
  }
  if (are_states_frozen_) {
    // The states stay as they were after the first run.
  } else if (is_read) {
    memory_->copy_to_wram(offset, at, bytes);
    if (is_direct) std::fill_n(memory_->wram + at, bytes, uint8_t{CheckedMemory::kDefined});
  } else {
    const auto *const states = memory_->wram + at;
    if (program_->is_checked() && std::all_of(states, states + bytes, [](uint8_t state) {
          return state == CheckedMemory::kNever || state == CheckedMemory::kEarlier;
        }))
      memory_->note_sent({program_, offset, bytes, tasklet, from});
    memory_->copy_to_mram(offset, at, bytes);
  }
  const CellAccess access = {at, at + bytes, clocks_[tasklet], epoch_, from | kDmaPlace};
  const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
    race(FindingKind::kRace, {false, cell}, access, is_read, epoch, earlier, was_write);
  };
  is_read ? note_write(wram_cells(), shared_, access, conflict)
          : note_read(wram_cells(), shared_, access, conflict);
  if (is_followed) follow(offset, at, bytes, from | kDmaPlace);
}

/// Reports a DMA that leaves an object of WRAM, or the heap.
void PeCheck::check_object(uint32_t at, uint32_t bytes, const char *name, uint32_t place) {
  const CheckedMemory::Object *const object = memory_->object_at(at);
  const uint32_t end = at + bytes;
  const auto is_outside = [](uint8_t state) { return (state & CheckedMemory::kUnallocated) != 0; };
  const bool leaves_heap =
      program_->is_checked() && std::any_of(memory_->wram + at, memory_->wram + end, is_outside);
  const bool leaves_object = object != nullptr && end > object->end &&
                             (memory_->object_at(object->end) != nullptr || object->place != 0);
  if (!leaves_heap && !leaves_object) return;
  report(FindingKind::kObject, place, object != nullptr ? object->place : 0, [&] {
    Side before;
    if (object != nullptr && object->place != 0)
      before = {"allocated", function_at(object->place), -1};
    return Finding{.object = wram_name(at),
                   .now = call_side(name, bytes, place),
                   .before = before,
                   .detail = leaves_heap
                                 ? "The DMA reaches memory that mem_alloc has not given out."
                                 : "The DMA ends " + std::to_string(end - object->end) +
                                       " bytes after the object."};
  });
}

/// Reports a DMA that leaves a variable of MRAM.
void PeCheck::check_variable(uint32_t offset, uint32_t bytes, const char *name, uint32_t place) {
  const CheckedMemory::Object *const variable = memory_->mram_variable_at(offset);
  if (variable == nullptr || offset + bytes <= variable->end) return;
  report(FindingKind::kObject, place, 0, [&] {
    return Finding{.object = mram_name(offset),
                   .now = call_side(name, bytes, place),
                   .detail = "The DMA ends " + std::to_string(offset + bytes - variable->end) +
                             " bytes after the variable."};
  });
}

/// Reports a DMA from or to bytes that buddy_free or fsb_free has freed.
void PeCheck::check_freed(uint32_t at, uint32_t bytes, const char *name, uint32_t place) {
  const auto *const states = memory_->wram + at;
  const auto *const freed = std::find_if(
      states, states + bytes, [](uint8_t state) { return (state & CheckedMemory::kFreed) != 0; });
  if (freed == states + bytes) return;
  const auto cell = static_cast<uint32_t>(freed - memory_->wram);
  report(FindingKind::kFreed, place, write_places_[cell], [&] {
    Side before;
    if (writes_[cell] != 0)
      before = side(thread_of(writes_[cell]), "freed it", write_places_[cell]);
    return Finding{
        .object = wram_name(cell), .now = call_side(name, bytes, place), .before = before};
  });
}

void PeCheck::note_direct_page(uint32_t offset) {
  if (!are_states_frozen_) memory_->define_mram(offset, kPageBytes);
}

Side PeCheck::call_side(const char *name, uint32_t bytes, uint32_t place) const {
  return side(tasklet_, std::string("calls ") + name + " of " + std::to_string(bytes) + " bytes",
              place);
}

}  // namespace dpuemu
