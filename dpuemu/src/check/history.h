// The last accesses to each cell of a memory: a byte of WRAM, or a word of 8 bytes of MRAM. Finds
// two accesses of which none happened before the other, and at least one writes.
#pragma once

#include <cstdint>
#include <vector>

#include "check/clocks.h"

namespace dpuemu {

/// The place of an access: an offset in the program's text, and flags.
using PlaceWord = uint32_t;
constexpr PlaceWord kVolatilePlace = 1u << 31, kDmaPlace = 1u << 30, kHostPlace = 1u << 29,
                    kUsedPlace = 1u << 28,  // a DMA whose bytes the program has used
    kTextMask = (1u << 28) - 1;

/// The last write of a cell, and its reads since then.
struct Cells {
  Epoch *writes, *reads;  // a read may be kShared + an index of SharedReads
  PlaceWord *write_places, *read_places;
};

/// The reads of cells that several tasklets have read since the last write.
class SharedReads {
 public:
  struct Entry {
    uint32_t begin, end;  // the cells that may refer to it
    Epoch epochs[kClockThreads];
    PlaceWord places[kClockThreads];
  };
  static constexpr Epoch kShared = 31u << kTimeBits;

  static bool is_shared(Epoch epoch) { return epoch >= kShared; }
  /// Forgets all entries, for a new run. Cells may still refer to them, unless is_first.
  void clear(bool is_first) {
    first_ = is_first ? 0 : first_ + static_cast<uint32_t>(entries_.size());
    entries_.clear();
    free_.clear();
  }
  /// Returns the entry, or nullptr if it belongs to an earlier run.
  Entry *find(Epoch shared) {
    const uint32_t index = (shared & kTimeMask) - first_;
    return index < entries_.size() ? &entries_[index] : nullptr;
  }
  Epoch add(const Entry &entry) {
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      entries_[index] = entry;
      return kShared | (first_ + index);
    }
    entries_.push_back(entry);
    return kShared | (first_ + static_cast<uint32_t>(entries_.size()) - 1);
  }
  bool is_half_full() const { return first_ > kTimeMask / 2; }
  void free(Epoch shared) { free_.push_back((shared & kTimeMask) - first_); }

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  uint32_t first_ = 0;  // the index of entries_[0] in epochs
};

/// An access by the thread whose clock is `clock`, at its time `epoch`.
struct CellAccess {
  uint32_t first, end;  // cells
  const VectorClock &clock;
  Epoch epoch;
  PlaceWord place;
};

/// Returns the end of the cells from `cell` on, before `end`, that have equal last accesses.
inline uint32_t end_of_equal_cells(const Cells &cells, uint32_t cell, uint32_t end) {
  uint32_t next = cell + 1;
  while (next < end && cells.writes[next] == cells.writes[cell] &&
         cells.reads[next] == cells.reads[cell])
    ++next;
  return next;
}

/// Calls conflict(cell, epoch, place, whether it wrote) for each earlier access that races with a
/// read, and notes the read.
template <class Conflict>
void note_read(const Cells &cells, SharedReads &shared, const CellAccess &access,
               Conflict conflict) {
  for (uint32_t i = access.first, next; i < access.end; i = next) {
    const Epoch write = cells.writes[i], read = cells.reads[i];
    next = end_of_equal_cells(cells, i, access.end);
    if (!access.clock.has(write)) conflict(i, write, cells.write_places[i], true);
    Epoch now = access.epoch;
    if (read == access.epoch) continue;
    if (SharedReads::is_shared(read)) {
      if (SharedReads::Entry *entry = shared.find(read); entry != nullptr) {
        if (entry->epochs[thread_of(now)] == now) continue;
        SharedReads::Entry copy = *entry;
        copy.epochs[thread_of(now)] = now;
        copy.places[thread_of(now)] = access.place;
        if (entry->begin >= i && entry->end <= next) {
          *entry = copy;
          continue;
        }
        copy.begin = i;
        copy.end = next;
        now = shared.add(copy);
      }
    } else if (!access.clock.has(read)) {
      SharedReads::Entry entry = {i, next, {}, {}};
      entry.epochs[thread_of(read)] = read;
      entry.places[thread_of(read)] = cells.read_places[i];
      entry.epochs[thread_of(now)] = now;
      entry.places[thread_of(now)] = access.place;
      now = shared.add(entry);
    }
    std::fill(cells.reads + i, cells.reads + next, now);
    std::fill(cells.read_places + i, cells.read_places + next, access.place);
  }
}

/// The same for a write.
template <class Conflict>
void note_write(const Cells &cells, SharedReads &shared, const CellAccess &access,
                Conflict conflict) {
  for (uint32_t i = access.first, next; i < access.end; i = next) {
    const Epoch write = cells.writes[i], read = cells.reads[i];
    next = end_of_equal_cells(cells, i, access.end);
    if (!access.clock.has(write)) conflict(i, write, cells.write_places[i], true);
    if (SharedReads::is_shared(read)) {
      if (const SharedReads::Entry *entry = shared.find(read); entry != nullptr) {
        for (uint32_t thread = 0; thread < kClockThreads; ++thread)
          if (!access.clock.has(entry->epochs[thread]))
            conflict(i, entry->epochs[thread], entry->places[thread], false);
        if (entry->begin >= i && entry->end <= next) shared.free(read);
      }
    } else if (!access.clock.has(read)) {
      conflict(i, read, cells.read_places[i], false);
    }
    std::fill(cells.writes + i, cells.writes + next, access.epoch);
    std::fill(cells.reads + i, cells.reads + next, 0u);
    std::fill(cells.write_places + i, cells.write_places + next, access.place);
  }
}

}  // namespace dpuemu
