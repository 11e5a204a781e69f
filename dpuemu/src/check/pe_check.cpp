#include "check/pe_check.h"

#include <algorithm>
#include <bit>

namespace dpuemu {
namespace {

/// After this number of accesses without a call, a tasklet lets other tasklets run, because it may
/// wait for a store.
constexpr uint32_t kMostAccesses = 20000;
/// gcc's frames on x86-64 have up to this many bytes more than frames of a DPU, and a frame of a
/// DPU has at least kLeastFrameBytes.
constexpr uint32_t kFrameSurplus = 64, kLeastFrameBytes = 8;

constexpr uint64_t lock_key(PeCheck::Lock kind, uint32_t key) {
  return uint64_t{static_cast<uint8_t>(kind)} << 32 | key;
}

}  // namespace

PeCheck::PeCheck()
    : epochs_(2 * PE_WRAM_BYTES),
      write_places_(PE_WRAM_BYTES),
      read_places_(PE_WRAM_BYTES),
      fresh_(PE_WRAM_BYTES / 8) {
  writes_ = epochs_.data();
  reads_ = writes_ + PE_WRAM_BYTES;
}

void PeCheck::begin(Pe &pe, const PePlace &place, uint32_t wram_bytes, uint32_t rank,
                    uint32_t dpu_index) {
  if (program_ != pe.program) followed_places_.clear();
  unused_places_.clear();
  doubts_.clear();
  readers_.clear();
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
  const bool is_first = time_ > kTimeMask / 2 || shared_.is_half_full();
  if (is_first) {
    std::fill(epochs_.begin(), epochs_.end(), 0u);
    mram_.clear();
    time_ = 0;
  }
  // All earlier times happened before this run.
  for (uint32_t i = 0; i < kClockThreads; ++i) {
    for (uint32_t j = 0; j < kClockThreads; ++j) clocks_[i].times[j] = epoch_of(j, time_);
    clocks_[i].times[i] = epoch_of(i, time_ + 1);
  }
  has_host_write_ = false;
  shared_.clear(is_first);
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
    explored_accesses_[i] = 0;
    last_reads_[i].clear();
  }
  const dpu_symbol_t *const buffer = program_->find("__mram_unaligned_access_buffer");
  word_buffer_ = buffer != nullptr ? buffer->address : 0;
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

void PeCheck::advance(uint32_t tasklet) {
  Epoch &time = clocks_[tasklet].times[tasklet];
  if ((time & kTimeMask) != kTimeMask) ++time;
  tick(tasklet);
}

/// Returns the place in the program that called the runtime, if the tasklet is in the runtime.
uint32_t PeCheck::outer(uint32_t tasklet, uint32_t place) const {
  const uint32_t own = runtime_depth_[tasklet] != 0 ? runtime_place_[tasklet] : place;
  return (own - text_) & kTextMask;
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
  stack.place_of_most = outer(tasklet_, place);
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
  note_depth(stack_pointer, outer(tasklet_, place));
}

void PeCheck::leave_runtime() {
  if (runtime_depth_[tasklet_] != 0) --runtime_depth_[tasklet_];
}

// --- Allocators

void PeCheck::note_memory(uint32_t address, uint32_t bytes, uint32_t state, uint32_t place) {
  const uint32_t at = address - wram_;
  if (at > wram_bytes_ || bytes > wram_bytes_ - at) return;
  const uint32_t from = outer(tasklet_, place);
  switch (state) {
    case PE_CHECK_ALLOCATED:
      return are_states_frozen_ ? void() : memory_->allocate(at, bytes, from);
    case PE_CHECK_RESET:
      return are_states_frozen_ ? void() : memory_->reset_heap(at);
    case PE_CHECK_INTERNAL:
      return void(std::fill_n(memory_->wram + at, bytes, uint8_t{CheckedMemory::kDefined}));
    default:
      if (!are_states_frozen_) memory_->set_part(at, bytes, from, state == PE_CHECK_TAKEN);
      std::fill_n(writes_ + at, bytes, epoch_);
      std::fill_n(write_places_.begin() + at, bytes, from);
      std::fill_n(reads_ + at, bytes, 0u);
  }
}

// --- Order of tasklets

void PeCheck::acquire(uint32_t tasklet, Lock kind, uint32_t key) {
  if (const auto lock = locks_.find(lock_key(kind, key)); lock != locks_.end())
    clocks_[tasklet].join(lock->second);
}

void PeCheck::release(uint32_t tasklet, Lock kind, uint32_t key) {
  locks_[lock_key(kind, key)].join(clocks_[tasklet]);
  advance(tasklet);
}

void PeCheck::meet(uint32_t tasklet, uint32_t other) {
  clocks_[tasklet].join(clocks_[other]);
  clocks_[other].join(clocks_[tasklet]);
  advance(tasklet);
  advance(other);
}

void PeCheck::lock(uint32_t tasklet, Lock kind, uint32_t number, uint32_t place) {
  acquire(tasklet, kind, number);
  held_[lock_key(kind, number)] = {{kind, number}, tasklet, outer(tasklet, place)};
}

void PeCheck::unlock(uint32_t tasklet, Lock kind, uint32_t number) {
  release(tasklet, kind, number);
  held_.erase(lock_key(kind, number));
}

void PeCheck::report_no_mutex(uint32_t tasklet, uint32_t number, uint32_t place) {
  const uint32_t from = outer(tasklet, place);
  report(FindingKind::kMutex, from, 0, [&] {
    return Finding{.object = mutex_name({Lock::kMutex, number}),
                   .now = side(tasklet, "locks it", from)};
  });
}

void PeCheck::arrive_at_barrier(uint32_t tasklet, uint32_t address, uint32_t count,
                                uint32_t place) {
  Barrier &barrier = barriers_[address];
  barrier.count = count;
  barrier.waiting |= 1u << tasklet;
  barrier.place = outer(tasklet, place);
  // Other tasklets may use the barrier afterwards, but only if something orders them.
  bool is_ordered = (barrier.last >> tasklet & 1) != 0;
  if (!is_ordered) {
    is_ordered = true;
    for (uint32_t left = barrier.last; left != 0; left &= left - 1)
      is_ordered = is_ordered && clocks_[tasklet].has(barrier.passed.times[std::countr_zero(left)]);
  }
  release(tasklet, Lock::kBarrier, address);
  if (is_ordered || barrier.is_reported) return;
  barrier.is_reported = true;
  report(FindingKind::kBarrier, barrier.place, 0, [&] {
    return Finding{
        .object = wram_name(address - wram_),
        .now = side(tasklet, "waits at it", barrier.place),
        .detail = "Its count is " + std::to_string(count) + ", but more tasklets use it."};
  });
}

void PeCheck::pass_barrier(uint32_t tasklets, uint32_t address) {
  const uint64_t key = lock_key(Lock::kBarrier, address);
  Barrier &barrier = barriers_[address];
  barrier.passed = locks_[key];
  barrier.last = tasklets;
  barrier.waiting = 0;
  for (; tasklets != 0; tasklets &= tasklets - 1)
    acquire(static_cast<uint32_t>(std::countr_zero(tasklets)), Lock::kBarrier, address);
  locks_.erase(key);
}

// --- The host

void PeCheck::drain_host() {
  for (const CheckedMemory::HostAccess &host : memory_->take_host()) {
    has_host_write_ = has_host_write_ || host.is_write;
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

// --- The end of a run

void PeCheck::end(bool has_fault, uint32_t at_barriers, const std::vector<Mutex> &awaited) {
  if (memory_->has_host()) drain_host();
  if (!followed_.empty()) end_following(0, PE_WRAM_BYTES, false);
  // Bytes that were not used later were probably not used in the first conflict either.
  for (const Doubt &doubt : doubts_)
    if (!unused_places_.contains(doubt.is_write ? doubt.other_place : doubt.own_place))
      race(doubt.kind, doubt.cell, {0, 0, clocks_[0], doubt.own, doubt.own_place}, doubt.is_write,
           doubt.other, doubt.other_place, doubt.was_write,
           "It is harmless if the program does not use these 8 bytes of the DMA.");
  for (const auto &[address, barrier] : barriers_) {
    const uint32_t left = barrier.waiting & at_barriers;
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
  for (const auto &[key, held] : held_) {
    const bool is_awaited = std::find(awaited.begin(), awaited.end(), held.mutex) != awaited.end();
    if ((has_fault && !is_awaited) || explorer_ != nullptr) continue;
    report(FindingKind::kHeld, held.place, 0, [&, &by = held] {
      return Finding{.object = mutex_name(by.mutex),
                     .now = side(by.tasklet, "locked it", by.place),
                     .detail = is_awaited ? "Other tasklets wait for it for ever." : ""};
    });
  }
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

}  // namespace dpuemu
