#include "check/pe_check.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "check/settings.h"

namespace dpuemu {
namespace {

__attribute__((tls_model("initial-exec"))) thread_local PeCheck *current_check = nullptr;

/// A tasklet that makes so many accesses without a call lets other tasklets run, because it may
/// wait for a store.
constexpr uint32_t kMostAccesses = 20000;
/// gcc's frames on x86-64 have up to this many bytes more than frames of a DPU, and a frame of a
/// DPU has at least kLeastFrameBytes.
constexpr uint32_t kFrameSurplus = 64, kLeastFrameBytes = 8;

std::string hexadecimal_of(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string in_brackets(const std::string &text) { return text.empty() ? "" : " (" + text + ")"; }

constexpr uint64_t lock_key(PeCheck::Lock kind, uint32_t key) {
  return uint64_t{static_cast<uint8_t>(kind)} << 32 | key;
}

}  // namespace

PeCheck *PeCheck::current() { return current_check; }
void PeCheck::set_current(PeCheck *check) { current_check = check; }

PeCheck::PeCheck()
    : epochs_(2 * PE_WRAM_BYTES), write_places_(PE_WRAM_BYTES), read_places_(PE_WRAM_BYTES) {
  writes_ = epochs_.data();
  reads_ = writes_ + PE_WRAM_BYTES;
}

void PeCheck::begin(Pe &pe, const PePlace &place, uint32_t wram_bytes, uint32_t rank,
                    uint32_t dpu_index) {
  pe_ = &pe;
  program_ = pe.program;
  memory_ = &checked_memory(pe);
  wram_ = address_of(place.wram);
  text_ = address_of(place.text);
  wram_bytes_ = wram_bytes;
  rank_ = rank;
  dpu_index_ = dpu_index;
  for (const VectorClock &clock : clocks_)
    for (const Epoch epoch : clock.times) time_ = std::max(time_, epoch & kTimeMask);
  if (time_ > kTimeMask / 2) {
    std::fill(epochs_.begin(), epochs_.end(), 0u);
    mram_.clear();
    time_ = 0;
  }
  // All earlier times happened before this run.
  for (uint32_t i = 0; i < kClockThreads; ++i) {
    for (uint32_t j = 0; j < kClockThreads; ++j) clocks_[i].times[j] = epoch_of(j, time_);
    clocks_[i].times[i] = epoch_of(i, time_ + 1);
  }
  shared_.clear();
  locks_.clear();
  barriers_.clear();
  held_.clear();
  reported_.clear();
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    stacks_[i].frames.clear();
    stacks_[i].sums.clear();
    stacks_[i].needed = stacks_[i].most = 0;
    runtime_depth_[i] = 0;
    in_flight_[i] = {};
    volatile_reads_[i] = {};
    delayed_[i] = {};
  }
  memory_->set_running(true);
}

void PeCheck::begin_stack(uint32_t tasklet, uint64_t top) { stacks_[tasklet].top = top; }

void PeCheck::enter(uint32_t tasklet) {
  tasklet_ = tasklet;
  accesses_left_ = is_exploring_ ? 1 : kMostAccesses;
  tick(tasklet);
  if (memory_->has_host()) drain_host();
  if (Access &delayed = delayed_[tasklet]; delayed.bytes != 0) {
    if (explorer_ != nullptr) note_step(delayed);
    note_access(delayed);
    delayed.bytes = 0;
  }
}

/// Takes the epoch of the tasklet into the fields of the fast path.
void PeCheck::tick(uint32_t tasklet) {
  if (tasklet != tasklet_) return;
  epoch_ = clocks_[tasklet].times[tasklet];
  two_epochs_ = uint64_t{epoch_} << 32 | epoch_;
}

/// Returns the place in the program that called the runtime, if the tasklet is in the runtime.
uint32_t PeCheck::outer(uint32_t place) const {
  const uint32_t own = runtime_depth_[tasklet_] != 0 ? runtime_place_[tasklet_] : place;
  return (own - text_) & kTextMask;
}

// --- Accesses

bool PeCheck::wait_before(const Access &access, bool waits) {
  if (is_exploring_) {
    accesses_left_ = 1;
    const Cell cell = cell_of(access.address);
    note_users(cell, access.bytes, access.kind.is_write);
    if (!waits && (explorer_ == nullptr || !is_shared(cell, access.bytes))) {
      if (explorer_ == nullptr) note_step(access);
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
  const auto [address, bytes, kind, place, is_range] = now;
  const uint32_t at = address - wram_, from = outer(place);
  if (at >= wram_bytes_ || bytes > wram_bytes_ - at) {
    if (address < PE_MRAM_ORIGIN + PE_MRAM_BYTES)  // no WRAM is there (low_memory.h)
      access_mram(address & (PE_MRAM_BYTES - 1), bytes, kind, from, false);
    else
      note_depth(reinterpret_cast<uint64_t>(__builtin_frame_address(0)), from);
    return;
  }
  if (is_range) return note_range(at, bytes, kind.is_write, from);
  check_states(at, bytes, kind, from, false);
  PlaceWord word = from;
  VolatileRead &last = volatile_reads_[tasklet_];
  const VectorClock &clock = clocks_[tasklet_];
  if (kind.is_volatile) {
    word |= kVolatilePlace;
    if (!kind.is_write) {
      last = {address, place, clock.has(writes_[at]), writes_[at], write_places_[at]};
      acquire(tasklet_, Lock::kVolatile, at);
    } else if (last.address == address && !last.was_ordered &&
               function_at(from) == function_at(outer(last.place))) {
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

void PeCheck::copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t place) {
  if (bytes == 0) return;
  const uint32_t source = from - wram_, target = to - wram_;
  const auto is_wram = [&](uint32_t at) { return at < wram_bytes_ && bytes <= wram_bytes_ - at; };
  std::vector<uint8_t> states(bytes, CheckedMemory::kDefined);
  if (is_wram(source)) {
    std::copy_n(memory_->wram + source, bytes, states.begin());
    note_access({from, bytes, {false, false}, place, true});
    std::copy_n(states.begin(), bytes, memory_->wram + source);
  }
  if (!is_wram(target)) return;
  note_access({to, bytes, {true, false}, place, true});
  for (uint32_t i = 0; i < bytes; ++i)
    if (states[i] == CheckedMemory::kNever || states[i] == CheckedMemory::kEarlier ||
        states[i] == CheckedMemory::kCopied)
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
  if (is_exploring_ && explorer_ != nullptr) return;
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
                                : is_earlier_launch ? FindingKind::kLeftover
                                                    : FindingKind::kUninitialised;
      report(found, place, write_places_[cell], [&] {
        Side before;
        if (found == FindingKind::kFreed && writes_[cell] != 0)
          before = side(thread_of(writes_[cell]), "freed it", write_places_[cell]);
        if ((state & CheckedMemory::kCopied) != 0)
          before = side(thread_of(writes_[cell]), "copied it from MRAM that nothing has written",
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

void PeCheck::access_mram(uint32_t offset, uint32_t bytes, AccessKind kind, uint32_t place,
                          bool is_dma) {
  if (kind.is_write && !is_dma && explorer_ == nullptr) memory_->define_mram(offset, bytes);
  const PlaceWord word = place | (is_dma ? kDmaPlace : 0);
  for (uint32_t end = std::min(offset + bytes, uint32_t{PE_MRAM_BYTES}); offset < end;) {
    const uint32_t page = offset / kPageBytes,
                   page_end = std::min<uint32_t>(end, (page + 1) * kPageBytes);
    auto &cells = mram_[page];
    if (cells == nullptr) cells = std::make_unique<MramCells>();
    const uint32_t first = offset % kPageBytes / 8, last = (page_end - 1) % kPageBytes / 8 + 1;
    const CellAccess access = {first, last, clocks_[tasklet_], epoch_, word};
    const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
      const uint32_t at = page * kPageBytes + 8 * cell;
      const uint32_t other = thread_of(epoch);
      const bool is_dma_in_flight = is_dma && other < PE_MAX_TASKLETS &&
                                    in_flight_[other].bytes != 0 &&
                                    at - in_flight_[other].offset < in_flight_[other].bytes;
      race(is_dma_in_flight ? FindingKind::kOverlap : FindingKind::kRace, {true, at}, access,
           kind.is_write, epoch, earlier, was_write);
    };
    const Cells view = {cells->writes, cells->reads, cells->write_places, cells->read_places};
    kind.is_write ? note_write(view, shared_, access, conflict)
                  : note_read(view, shared_, access, conflict);
    offset = page_end;
  }
}

// --- Stacks

void PeCheck::note_depth(uint64_t stack_pointer, uint32_t place) {
  Stack &stack = stacks_[tasklet_];
  const uint64_t last = stack.frames.empty() ? stack.top : stack.frames.back();
  if (stack_pointer >= last || stack.top - stack_pointer > PE_STACK_BLOCK_BYTES) return;
  const auto frame = static_cast<uint32_t>(last - stack_pointer);
  const uint32_t needed = stack.needed + (frame > kFrameSurplus ? frame - kFrameSurplus : 0);
  if (needed <= stack.most) return;
  stack.most = needed;
  stack.place_of_most = place;
}

void PeCheck::enter_function(uint64_t stack_pointer, uint32_t place) {
  Stack &stack = stacks_[tasklet_];
  const uint64_t last = stack.frames.empty() ? stack.top : stack.frames.back();
  const auto frame = static_cast<uint32_t>(last > stack_pointer ? last - stack_pointer : 0);
  stack.sums.push_back(stack.needed);
  stack.frames.push_back(stack_pointer);
  stack.needed += std::max(kLeastFrameBytes, frame > kFrameSurplus ? frame - kFrameSurplus : 0);
  if (stack.needed <= stack.most) return;
  stack.most = stack.needed;
  stack.place_of_most = outer(place);
}

void PeCheck::leave_function() {
  Stack &stack = stacks_[tasklet_];
  if (stack.frames.empty()) return;
  stack.needed = stack.sums.back();
  stack.sums.pop_back();
  stack.frames.pop_back();
}

void PeCheck::enter_runtime(uint64_t stack_pointer, uint32_t place) {
  if (runtime_depth_[tasklet_]++ == 0) runtime_place_[tasklet_] = place;
  note_depth(stack_pointer, outer(place));
}

void PeCheck::leave_runtime() {
  if (runtime_depth_[tasklet_] != 0) --runtime_depth_[tasklet_];
}

// --- Allocators

void PeCheck::note_memory(uint32_t address, uint32_t bytes, uint32_t state, uint32_t place) {
  const uint32_t at = address - wram_;
  if (at > wram_bytes_ || bytes > wram_bytes_ - at) return;
  const uint32_t from = outer(place);
  switch (state) {
    case PE_CHECK_ALLOCATED:
      return memory_->allocate(at, bytes, from);
    case PE_CHECK_RESET:
      return memory_->reset_heap(at);
    case PE_CHECK_INTERNAL:
      return void(std::fill_n(memory_->wram + at, bytes, uint8_t{CheckedMemory::kDefined}));
    default:
      for (uint32_t i = at; i < at + bytes; ++i)
        memory_->wram[i] = state == PE_CHECK_TAKEN ? CheckedMemory::kNever : CheckedMemory::kFreed;
      std::fill_n(writes_ + at, bytes, epoch_);
      std::fill_n(write_places_.begin() + at, bytes, from);
      std::fill_n(reads_ + at, bytes, 0u);
  }
}

void PeCheck::lock_heap(bool is_taken) {
  is_taken ? acquire(tasklet_, Lock::kHeap, 0) : release(tasklet_, Lock::kHeap, 0);
}

// --- Order of tasklets

void PeCheck::acquire(uint32_t tasklet, Lock kind, uint32_t key) {
  if (const auto lock = locks_.find(lock_key(kind, key)); lock != locks_.end())
    clocks_[tasklet].join(lock->second);
}

void PeCheck::release(uint32_t tasklet, Lock kind, uint32_t key) {
  locks_[lock_key(kind, key)].join(clocks_[tasklet]);
  ++clocks_[tasklet].times[tasklet];
  tick(tasklet);
}

void PeCheck::meet(uint32_t tasklet, uint32_t other) {
  clocks_[tasklet].join(clocks_[other]);
  clocks_[other].join(clocks_[tasklet]);
  for (const uint32_t one : {tasklet, other}) {
    ++clocks_[one].times[one];
    tick(one);
  }
}

void PeCheck::lock_mutex(uint32_t tasklet, uint32_t number, uint32_t place, bool is_mutex) {
  acquire(tasklet, Lock::kMutex, number);
  held_[number] = {tasklet, outer(place)};
  if (!is_mutex)
    report(FindingKind::kMutex, outer(place), 0, [&] {
      return Finding{.object = "mutex " + std::to_string(number),
                     .now = side(tasklet, "locks it", outer(place))};
    });
}

void PeCheck::unlock_mutex(uint32_t tasklet, uint32_t number) {
  release(tasklet, Lock::kMutex, number);
  held_.erase(number);
}

void PeCheck::arrive_at_barrier(uint32_t tasklet, uint32_t address, uint32_t count,
                                uint32_t place) {
  release(tasklet, Lock::kBarrier, address);
  Barrier &barrier = barriers_[address];
  barrier.count = count;
  barrier.users |= 1u << tasklet;
  barrier.waiting |= 1u << tasklet;
  barrier.place = outer(place);
  if (static_cast<uint32_t>(std::popcount(barrier.users)) <= count || barrier.is_reported) return;
  barrier.is_reported = true;
  report(FindingKind::kBarrier, barrier.place, 0, [&] {
    return Finding{
        .object = wram_name(address - wram_),
        .now = side(tasklet, "waits at it", barrier.place),
        .detail = "Its count is " + std::to_string(count) + ", but more tasklets use it."};
  });
}

void PeCheck::pass_barrier(uint32_t tasklets, uint32_t address) {
  for (; tasklets != 0; tasklets &= tasklets - 1)
    acquire(static_cast<uint32_t>(std::countr_zero(tasklets)), Lock::kBarrier, address);
  locks_.erase(lock_key(Lock::kBarrier, address));
  barriers_[address].waiting = 0;
}

// --- DMA

void PeCheck::transfer(uint32_t tasklet, uint32_t offset, uint32_t wram, uint32_t bytes,
                       bool is_read, bool is_direct, bool is_rounded, uint32_t place) {
  tasklet_ = tasklet;
  tick(tasklet);
  const uint32_t from = outer(place);
  const char *const name = is_read ? "mram_read" : "mram_write";
  if (is_rounded)
    report(FindingKind::kRounded, from, 0, [&] {
      return Finding{.object = mram_name(offset),
                     .now = side(tasklet, std::string("calls ") + name, from),
                     .detail = "It moves " + std::to_string(bytes) + " bytes."};
    });
  access_mram(offset, bytes, {!is_read, false}, from, true);
  in_flight_[tasklet] = {offset, bytes, is_read, from};
  if (is_exploring_) {
    note_users({true, offset}, bytes, !is_read);
    note_users(cell_of(wram), bytes, is_read);
    const auto *const contents = reinterpret_cast<const uint8_t *>(uintptr_t{wram});
    note_step({true, offset}, bytes, !is_read, from, contents);
    note_step(cell_of(wram), bytes, is_read, from, contents);
  }
  check_variable(offset, bytes, name, from);
  const uint32_t at = wram - wram_;
  if (at >= wram_bytes_ || bytes > wram_bytes_ - at) {  // on a stack
    if (!is_read && explorer_ == nullptr) memory_->define_mram(offset, bytes);
    return;
  }
  check_object(at, bytes, name, from);
  if (explorer_ != nullptr) {
    // The states stay as they were after the first run.
  } else if (is_read) {
    memory_->copy_to_wram(offset, at, bytes);
    if (is_direct) std::fill_n(memory_->wram + at, bytes, uint8_t{CheckedMemory::kDefined});
  } else {
    memory_->copy_to_mram(offset, at, bytes);
  }
  const CellAccess access = {at, at + bytes, clocks_[tasklet], epoch_, from | kDmaPlace};
  const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
    race(FindingKind::kRace, {false, cell}, access, is_read, epoch, earlier, was_write);
  };
  is_read ? note_write(wram_cells(), shared_, access, conflict)
          : note_read(wram_cells(), shared_, access, conflict);
}

/// Reports a DMA that leaves an object of WRAM, or the heap.
void PeCheck::check_object(uint32_t at, uint32_t bytes, const char *name, uint32_t place) {
  const CheckedMemory::Object *const object = memory_->object_at(at);
  const uint32_t end = at + bytes;
  const bool leaves_heap =
      program_->is_checked() && (memory_->wram[end - 1] & CheckedMemory::kUnallocated) != 0;
  const bool leaves_object = object != nullptr && end > object->end &&
                             (memory_->object_at(object->end) != nullptr || object->place != 0);
  if (!leaves_heap && !leaves_object) return;
  report(FindingKind::kObject, place, object != nullptr ? object->place : 0, [&] {
    Side before;
    if (object != nullptr && object->place != 0) before = {"allocated", function_at(object->place)};
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
  const dpu_symbol_t *const heap = program_->find(DPU_MRAM_HEAP_POINTER_NAME);
  const uint32_t address = PE_MRAM_ORIGIN + offset;
  if (heap == nullptr || address >= heap->address) return;
  for (const auto &[variable, symbol] : program_->symbols()) {
    if (address < symbol.address || address - symbol.address >= symbol.size ||
        variable == DPU_MRAM_HEAP_POINTER_NAME)
      continue;
    const uint32_t end = (symbol.address + symbol.size + 7) & ~7u;
    if (address + bytes > end)
      report(FindingKind::kObject, place, 0, [&] {
        return Finding{.object = mram_name(offset),
                       .now = call_side(name, bytes, place),
                       .detail = "The DMA ends " + std::to_string(address + bytes - end) +
                                 " bytes after the variable."};
      });
    return;
  }
}

Side PeCheck::call_side(const char *name, uint32_t bytes, uint32_t place) const {
  return side(tasklet_, std::string("calls ") + name + " of " + std::to_string(bytes) + " bytes",
              place);
}

// --- The host

void PeCheck::drain_host() {
  for (const CheckedMemory::HostAccess &host : memory_->take_host()) {
    const uint32_t end = std::min(host.offset + host.bytes, wram_bytes_);
    Epoch &time = clocks_[kHostThread].times[kHostThread];
    const CellAccess access = {host.offset, end, clocks_[kHostThread], time, kHostPlace};
    const auto conflict = [&](uint32_t cell, Epoch epoch, PlaceWord earlier, bool was_write) {
      if ((earlier & kVolatilePlace) == 0)
        race(FindingKind::kHost, {false, cell}, access, host.is_write, epoch, earlier, was_write);
    };
    if (host.is_write) {
      note_write(wram_cells(), shared_, access, conflict);
      std::fill(memory_->wram + host.offset, memory_->wram + end, uint8_t{CheckedMemory::kDefined});
    } else {
      note_read(wram_cells(), shared_, access, conflict);
    }
  }
}

// --- Other orders

void PeCheck::explore(Explorer *explorer) {
  is_exploring_ = true;
  explorer_ = explorer;
}

void PeCheck::stop_exploring() {
  is_exploring_ = false;
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
  note_step(cell_of(access.address), access.bytes, access.kind.is_write, outer(access.place),
            reinterpret_cast<const uint8_t *>(uintptr_t{access.address}));
}

void PeCheck::note_step(const Cell &first, uint32_t bytes, bool is_write, uint32_t place,
                        const uint8_t *contents) {
  bool is_any = false;
  for_each_cell(first, bytes, [&](uint64_t cell) {
    if (!shared_cells_.contains(cell)) return;
    is_any = true;
    if (explorer_ != nullptr) explorer_->note({cell, is_write, true});
  });
  if (!is_any || is_write) return;
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i)
    value = bytes <= 8 ? value | uint64_t{contents[i]} << (8 * i)
                       : (value ^ contents[i]) * UINT64_C(0x100000001B3);
  observations_.push_back({tasklet_, place, first, value});
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

// --- The end of a run

void PeCheck::end(uint32_t waiting, bool has_fault) {
  if (memory_->has_host()) drain_host();
  memory_->set_running(false);
  for (const auto &[address, barrier] : barriers_) {
    const uint32_t left = barrier.waiting & waiting;
    if (left == 0 || barrier.is_reported) continue;
    report(FindingKind::kBarrier, barrier.place, 0, [&, at = address - wram_, &of = barrier] {
      return Finding{.object = wram_name(at),
                     .now = side(static_cast<uint32_t>(std::countr_zero(left)),
                                 "waits at it for ever", of.place),
                     .detail = "Its count is " + std::to_string(of.count) + "; " +
                               std::to_string(std::popcount(left)) +
                               " tasklets wait when the others have ended."};
    });
  }
  if (has_fault) held_.clear();
  for (const auto &[number, held] : held_)
    report(FindingKind::kHeld, held.place, 0, [&, mutex = number, &by = held] {
      return Finding{.object = "mutex " + std::to_string(mutex) +
                               in_brackets(program_->variable_at(PE_ATOMIC_ORIGIN + mutex)),
                     .now = side(by.tasklet, "locked it", by.place)};
    });
  for (uint32_t i = 0; i < program_->tasklets(); ++i) {
    const Stack &stack = stacks_[i];
    if (stack.most <= program_->stack_bytes(i)) continue;
    report(FindingKind::kStack, stack.place_of_most, 0, [&] {
      return Finding{.object = "the stack of tasklet " + std::to_string(i),
                     .now = side(i, "reaches its depth", stack.place_of_most),
                     .detail = "It needs at least " + std::to_string(stack.most) + " bytes; " +
                               std::to_string(program_->stack_bytes(i)) + " are declared."};
    });
  }
  for (auto &[key, reported] : reported_)
    if (reported.repetitions != 0) note_finding(reported.finding, reported.repetitions);
  reported_.clear();
}

// --- Reports

template <class Make>
void PeCheck::report(FindingKind kind, PlaceWord now, PlaceWord before, Make make) {
  constexpr uint64_t kPlaceMask = (1u << 28) - 1;
  const uint64_t key =
      uint64_t{static_cast<uint8_t>(kind)} << 56 | (now & kPlaceMask) << 28 | (before & kPlaceMask);
  const auto [entry, is_new] = reported_.try_emplace(key);
  if (!is_new) return void(++entry->second.repetitions);
  Finding finding = make();
  finding.kind = kind;
  finding.pe = pe_name(rank_, dpu_index_);
  note_finding(finding);
  entry->second.finding = std::move(finding);
}

void PeCheck::race(FindingKind kind, const Cell &cell, const CellAccess &access, bool is_write,
                   Epoch epoch, PlaceWord place, bool was_write) {
  const uint32_t other = thread_of(epoch), own = thread_of(access.epoch);
  if (other == kHostThread || own == kHostThread) kind = FindingKind::kHost;
  if (kind == FindingKind::kHost && ((place | access.place) & kVolatilePlace) != 0) return;
  const auto act = [](bool writes, PlaceWord at) {
    return std::string((at & kDmaPlace) != 0 ? (writes ? "writes it by DMA" : "reads it by DMA")
                                             : (writes ? "writes it" : "reads it"));
  };
  report(kind, access.place, place, [&] {
    return Finding{.object = name_of(cell),
                   .now = side(own, act(is_write, access.place), access.place),
                   .before = side(other, act(was_write, place), place)};
  });
}

Side PeCheck::side(uint32_t tasklet, const std::string &act, PlaceWord place) const {
  if (tasklet == kHostThread) return {"the host " + act, ""};
  return {"tasklet " + std::to_string(tasklet) + " " + act, function_at(place & kTextMask)};
}

std::string PeCheck::function_at(uint32_t place) const {
  // The place is a return address, after the call.
  return place == 0 ? "" : program_->function_at(PE_TEXT_ORIGIN + place - 1);
}

std::string PeCheck::name_of(const Cell &cell) const {
  return cell.is_mram ? mram_name(cell.address) : wram_name(cell.address);
}

std::string PeCheck::wram_name(uint32_t at) const {
  std::string name = program_->variable_at(at);
  if (name.empty())
    if (const CheckedMemory::Object *object = memory_->object_at(at);
        object != nullptr && object->place != 0)
      name = "byte " + std::to_string(at - object->begin) + " of a block of the heap";
  return "WRAM address " + hexadecimal_of(at) + in_brackets(name);
}

std::string PeCheck::mram_name(uint32_t offset) const {
  return "MRAM address " + hexadecimal_of(offset) +
         in_brackets(program_->variable_at(PE_MRAM_ORIGIN + offset));
}

}  // namespace dpuemu
