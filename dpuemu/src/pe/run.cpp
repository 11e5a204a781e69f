#include "pe/run.h"

#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/low_memory.h"
#include "machine/machine.h"
#include "pe/run_calls.h"

namespace dpuemu {

namespace {

constexpr uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// In strict mode, a tasklet has a stack of its declared size, so that the first byte below it is
/// inaccessible. Otherwise it has the largest possible stack, because x86-64 frames are larger than
/// DPU frames. These stacks start at different offsets in their blocks, so that the caches can hold
/// the first frames of all tasklets.
uint32_t stack_bytes(const Program &program, uint32_t tasklet, bool is_strict) {
  constexpr uint32_t kMost = Stacks::kMostBytes - kStackEndBytes, kFrameAlignment = 16;
  constexpr uint32_t kOffsets = 16, kOffsetBytes = 256;
  return is_strict ? std::min(round_up(program.stack_bytes(tasklet), kFrameAlignment), kMost)
                   : kMost - tasklet % kOffsets * kOffsetBytes;
}

}  // namespace

/// The number of instructions of a call on a DPU: one instruction, or our estimate for the SDK's
/// routine. The numbers do not include waiting and the formatting of printf. Formatting takes
/// thousands of instructions on a DPU, but is rare in programs whose run time matters.
namespace instructions_of {
constexpr uint32_t __pe_exit = 1, __pe_fault = 1;
constexpr uint32_t mram_read = 1, mram_write = 1;
constexpr uint32_t barrier_wait = 14, sem_take = 12, sem_give = 12, handshake_notify = 10,
                   handshake_wait_for = 12;
constexpr uint32_t mutex_lock = 1, mutex_trylock = 2, mutex_unlock = 1, vmutex_lock = 11,
                   vmutex_unlock = 11;
constexpr uint32_t perfcounter_config = 4, perfcounter_get = 3, __pe_read_counters = 20;
constexpr uint32_t __pe_print_format = 200, __pe_print_bytes = 100;
constexpr uint32_t __pe_await_host = 4;
constexpr uint32_t __pe_ldma = 1, __pe_sdma = 1, __pe_use_run = 1, __pe_stop = 1;
constexpr uint32_t __pe_region = 0;
constexpr uint32_t __pe_turn = 2;  // acquire and release the lock of an allocator
}  // namespace instructions_of

struct PeRun::CallRow {
  uint32_t number;
  Call function;
  uint32_t instructions;
};

#define DPUEMU_CALL_NUMBER(number, name) k_##name = number,
enum CallNumber : uint32_t { PE_CALL_TABLE(DPUEMU_CALL_NUMBER) };
#undef DPUEMU_CALL_NUMBER

#define DPUEMU_CALL_ROW(number, name) {number, &PeRun::call_##name, instructions_of::name},
constexpr PeRun::CallRow PeRun::kCalls[] = {PE_CALL_TABLE(DPUEMU_CALL_ROW)};
#undef DPUEMU_CALL_ROW

bool PeRun::reserve() {
  if (!stacks_.reserve() || !direct_mram_.reserve()) return false;
  const Tasklet &first = tasklets_[0];
  debugged_.tasklet_bytes = sizeof first;
  debugged_.woken = &woken_;
  debugged_.state = &first.state;
  debugged_.wait_kind = &first.wait_kind;
  debugged_.wait_key = &first.wait_key;
  debugged_.interrupted = &first.interrupted;
  debugged_.stack = &first.at_call.stack;
  debugged_.stack_end = stacks_.end(0);
  debugged_.mutex_holders = mutex_holders_;
  direct_mram_.show_to(debugged_);
  return true;
}

bool PeRun::begin(Pe &pe, const PePlace &place, const MramPort &port, bool is_strict,
                  bool is_accessible, PeCheck *check, PeSnapshot *snapshot, PeObserver *observer) {
  const Program &program = *pe.program;
  AnyRun::begin(pe);
  check_ = check;
  snapshot_ = snapshot;
  observer_ = observer;
  place_ = place;
  const Chip &chip = Machine::instance().chip();
  wram_bytes_ = chip.wram_bytes;
  has_both_counters_ = chip.name != std::string_view("v1A");
  is_strict_ = is_strict;
  first_waiter_ = last_waiter_ = PE_MAX_TASKLETS;
  other_run_bits_ = 0;
  cycle_counter_ = instruction_counter_ = {};
  shows_instructions_ = false;
  direct_mram_.begin(port);
  bool has_memory = is_accessible;
  uint64_t stack_tops[PE_MAX_TASKLETS];
  for (uint32_t i = 0; i < program.tasklets(); ++i) {
    // Frames of checked programs are larger.
    const bool is_exact = is_strict && check == nullptr;
    const uint32_t bytes = stack_bytes(program, i, is_exact),
                   usable =
                       is_exact ? round_up(bytes + kStackEndBytes, kPageBytes) : Stacks::kMostBytes;
    stack_tops[i] = stacks_.end(i) - usable + bytes;
    has_memory = has_memory && stacks_.set_usable(i, usable);
  }
  if (!has_memory) {
    fail_without_memory();
    return false;
  }
  if (observer != nullptr) observer->begin(program, place);
  // The start-up code of a DPU frees the mutexes. After them is the lock of the allocators.
  std::fill_n(place.wram + PE_ATOMIC_ORIGIN, PE_ATOMIC_BYTES + 1, uint8_t{0});
  for (Tasklet &tasklet : tasklets_) tasklet = Tasklet();
  // The stacks of the tasklets in WRAM end where the heap begins.
  constexpr uint32_t kStackAlignment = 8;
  uint32_t wram_stack = address_of(place.wram) + program.heap_address();
  for (uint32_t i = program.tasklets(); i-- > 0;) {
    wram_stack -= round_up(program.stack_bytes(i), kStackAlignment);
    tasklets_[i].at_call.stack =
        prepare_tasklet(stacks_.end(i), stack_tops[i], program.entry(place), i, wram_stack);
    tasklets_[i].state = State::kWaiting;
    woken_ |= 1u << i;
    if (check != nullptr) check->begin_stack(i, stack_tops[i]);
  }
  debugged_.tasklets = program.tasklets();
  debugged_.place = place;
  return true;
}

template <PeRun::Watch kWatch>
inline void PeRun::resume(Door &door, std::atomic<uint64_t> &turns, uint32_t number) {
  Tasklet &tasklet = tasklets_[number];
  turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if constexpr (kWatch == Watch::kChecks) check_->enter(number);
  const uint64_t instructions_before = tasklet.at_call.instructions;
  uint32_t call;
  if (tasklet.interrupted == nullptr) [[likely]] {
    call = enter_tasklet(door, tasklet.at_call, tasklet.result);
  } else {
    call = continue_tasklet(door, tasklet.at_call, *tasklet.interrupted);
    if (call != kInterrupted) tasklet.interrupted.reset();
  }
  if (call == kSignal) [[unlikely]]
    return fault_by_signal(door, number);
  const uint64_t computed = tasklet.at_call.instructions - instructions_before;
  if (call == kInterrupted) [[unlikely]] {
    if (tasklet.interrupted == nullptr)
      tasklet.interrupted = std::make_unique<Interrupted>(door.interrupted);
    else
      *tasklet.interrupted = door.interrupted;
    tasklet.state = State::kPaused;
    if constexpr (kWatch == Watch::kObserver) observer_->start(number, clock_.cycles(), computed);
    return clock_.compute(number, computed);
  }
  tasklet.call = call;
  tasklet.state = State::kCalling;
  if (call == k_mram_read || call == k_mram_write) {
    const uint32_t *const arguments = tasklet.at_call.arguments;
    direct_mram_.prefetch(call == k_mram_read ? arguments[0] : arguments[1], arguments[2]);
  }
  const uint64_t issued = computed + (call < std::size(kCalls) ? kCalls[call].instructions : 1);
  if constexpr (kWatch == Watch::kObserver) observer_->start(number, clock_.cycles(), issued);
  clock_.compute(number, issued);
}

inline PeRun::After PeRun::carry_out(uint32_t number) {
  const Tasklet &tasklet = tasklets_[number];
  const uint32_t *const arguments = tasklet.at_call.arguments;
  switch (tasklet.call) {
    case k_mram_read:
      return call_mram_read(number, arguments);
    case k_mram_write:
      return call_mram_write(number, arguments);
    case k_mutex_lock:
      return call_mutex_lock(number, arguments);
    case k_mutex_unlock:
      return call_mutex_unlock(number, arguments);
    default:
      return (this->*kCalls[tasklet.call].function)(number, arguments);
  }
}

PeRun::After PeRun::carry_out_checked(uint32_t number) {
  const uint32_t *const arguments = tasklets_[number].at_call.arguments;
  const uint32_t mutex = arguments[0] % PE_ATOMIC_BYTES;
  switch (tasklets_[number].call) {
    case k_mram_read:
      return transfer_checked(number, arguments[0], arguments[1], arguments[2], true);
    case k_mram_write:
      return transfer_checked(number, arguments[1], arguments[0], arguments[2], false);
    case k_mutex_lock: {
      const After after = call_mutex_lock(number, arguments);
      if (after == After::kGoOn) check_mutex(number);
      return after;
    }
    case k_mutex_unlock: {
      const uint32_t waiter = first_waiter(WaitKind::kMutex, mutex);
      check_->unlock(number, PeCheck::Lock::kMutex, mutex);
      const After after = call_mutex_unlock(number, arguments);
      if (after == After::kGoOn && waiter != PE_MAX_TASKLETS) check_mutex(waiter);
      return after;
    }
    default:
      return carry_out(number);
  }
}

Wait PeRun::wait_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::kBarrier:
      return Wait::kBarrier;
    case WaitKind::kMutex:
    case WaitKind::kVirtualMutex:
      return Wait::kMutex;
    case WaitKind::kSemaphore:
      return Wait::kSemaphore;
    case WaitKind::kNotifier:
    case WaitKind::kNotified:
      return Wait::kHandshake;
    case WaitKind::kResume:
      break;
  }
  return Wait::kStop;
}

PeRun::After PeRun::carry_out_observed(uint32_t number) {
  const Tasklet &tasklet = tasklets_[number];
  const uint32_t woken = woken_, moved_bytes = moved_bytes_;
  const uint64_t instructions = clock_.instructions(), reads = pe_->report.dma_reads;
  const double now = clock_.cycles();
  observer_->call(number, place_of_call(number) - address_of(place_.text),
                  kCalls[tasklet.call].instructions);
  const After after = (this->*kCalls[tasklet.call].function)(number, tasklet.at_call.arguments);
  if (has_ended_) return after;
  for (uint32_t others = woken_ & ~woken; others != 0; others &= others - 1)
    observer_->resume(static_cast<uint32_t>(std::countr_zero(others)), now,
                      clock_.instructions() - instructions);
  if (tasklet.state == State::kTransferring)
    observer_->wait_for_dma(number, now,
                            last_dma(moved_bytes_ - moved_bytes, pe_->report.dma_reads != reads));
  else if (tasklet.state == State::kEnded)
    observer_->end_tasklet(number, now);
  else if (tasklet.state == State::kWaiting && after == After::kStay)
    observer_->wait(number, wait_of(tasklet.wait_kind), now);
  else if (tasklet.call == k_perfcounter_get || tasklet.call == k_perfcounter_config)
    observer_->read_counter(number, now, tasklet.result);
  return after;
}

PeRun::Step PeRun::step(Door &door, std::atomic<uint64_t> &turns) {
  if (check_ != nullptr) return step_as<Watch::kChecks>(door, turns);
  if (observer_ != nullptr) return step_as<Watch::kObserver>(door, turns);
  return step_as<Watch::kNone>(door, turns);
}

template <PeRun::Watch kWatch>
PeRun::Step PeRun::step_as(Door &door, std::atomic<uint64_t> &turns) {
  constexpr bool kIsChecked = kWatch == Watch::kChecks, kIsObserved = kWatch == Watch::kObserver;
  const bool is_explored = kIsChecked && check_->explorer() != nullptr;
  moved_bytes_ = 0;
  for (uint32_t calls = 0; calls < kStepCalls; ++calls) {
    while (woken_ != 0 && !has_ended_) {
      const auto number = static_cast<uint32_t>(std::countr_zero(woken_));
      woken_ &= woken_ - 1;
      resume<kWatch>(door, turns, number);
    }
    if (has_ended_) return Step::kEnded;

    const auto [number, is_transfer] =
        is_explored ? PeClock::Completion{choose_step(), false} : clock_.next();
    if (is_transfer) {
      woken_ |= 1u << number;
      if constexpr (kIsChecked) check_->end_transfer(number);
      if constexpr (kIsObserved) observer_->resume(number, clock_.cycles(), 0);
      continue;
    }
    if (number == PeClock::kNobody) {
      end_waiting();
      if (!has_ended_) end();
      return Step::kEnded;
    }
    Tasklet &tasklet = tasklets_[number];
    if constexpr (kIsObserved) observer_->pause(number, clock_.cycles());
    if (tasklet.state == State::kPaused) {
      woken_ |= 1u << number;
      return Step::kOther;
    }
    if (tasklet.call >= std::size(kCalls)) {
      fault(FaultKind::kInstruction, number, "the program was not compiled for this emulator");
      return Step::kEnded;
    }
    tasklet.state = State::kWaiting;
    const After after = kIsChecked    ? carry_out_checked(number)
                        : kIsObserved ? carry_out_observed(number)
                                      : carry_out(number);
    if (after == After::kGoOn) woken_ |= 1u << number;
    if (is_explored && tasklet.state == State::kTransferring) {
      woken_ |= 1u << number;  // the transfer is a single step
      check_->end_transfer(number);
    }
    if (has_ended_) return Step::kEnded;
    if (moved_bytes_ >= kStepBytes) return Step::kTransferred;
    if (tasklet.call == k___pe_await_host) return Step::kAwaitsHost;
  }
  return Step::kOther;
}

void PeRun::finish() {
  if (check_ != nullptr) {
    const FaultKind fault = pe_->fault.kind;
    uint32_t at_barriers = 0;
    bool waits_elsewhere = fault != FaultKind::kNone && fault != FaultKind::kDeadlock;
    std::vector<PeCheck::Mutex> mutexes;
    for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
      const Tasklet &tasklet = tasklets_[i];
      if (tasklet.state != State::kWaiting) continue;
      if (tasklet.wait_kind == WaitKind::kMutex)
        mutexes.push_back({PeCheck::Lock::kMutex, tasklet.wait_key});
      if (tasklet.wait_kind == WaitKind::kVirtualMutex)
        mutexes.push_back({PeCheck::Lock::kVirtualMutex, tasklet.wait_key});
      if (tasklet.wait_kind == WaitKind::kBarrier)
        at_barriers |= 1u << i;
      else
        waits_elsewhere = true;
    }
    direct_mram_.for_each_used_page(
        [this](uint64_t offset) { check_->note_direct_page(static_cast<uint32_t>(offset)); });
    check_->end(fault != FaultKind::kNone, waits_elsewhere ? 0 : at_barriers, mutexes);
  }
  if (observer_ != nullptr && pe_->fault.kind != FaultKind::kNoMemory) observer_->end(pe_->report);
  if (snapshot_ != nullptr)
    direct_mram_.for_each_used_page(
        [this](uint64_t offset) { snapshot_->before_write(offset, kPageBytes); });
  pe_->report.direct_pages = direct_mram_.end();
}

uint32_t PeRun::choose_step() {
  constexpr uint64_t kMutexes = UINT64_C(1) << 40, kObjects = UINT64_C(2) << 40,
                     kHandshakes = UINT64_C(3) << 40, kHeap = UINT64_C(4) << 40,
                     kVirtualMutexes = UINT64_C(5) << 40, kRun = UINT64_C(6) << 40;
  Explorer &explorer = *check_->explorer();
  clock_.start();  // the explorer replaces the clock
  uint32_t ready = 0;
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i)
    if (tasklets_[i].state == State::kCalling || tasklets_[i].state == State::kPaused)
      ready |= 1u << i;
  if (ready == 0) return PeClock::kNobody;
  const uint32_t number = explorer.choose(ready);
  const Tasklet &tasklet = tasklets_[number];
  const uint64_t argument = tasklet.at_call.arguments[0];
  if (tasklet.state == State::kPaused) return number;
  switch (tasklet.call) {
    case k_mutex_lock:
    case k_mutex_trylock:
      explorer.note({kMutexes | argument % PE_ATOMIC_BYTES, true, true});
      break;
    case k_mutex_unlock:
      explorer.note({kMutexes | argument % PE_ATOMIC_BYTES, true, false});
      break;
    case k_sem_take:
    case k_sem_give:
      explorer.note({kObjects | argument, true, true});
      break;
    case k_barrier_wait:
      explorer.note({kObjects | argument, true, false});
      break;
    case k_handshake_notify:
      explorer.note({kHandshakes | number, true, false});
      break;
    case k_handshake_wait_for:
      explorer.note({kHandshakes | argument, true, true});
      break;
    case k_vmutex_lock:
    case k_vmutex_unlock:
      explorer.note({kVirtualMutexes | (tasklet.at_call.arguments[1] & 0xFFFF), true,
                     tasklet.call == k_vmutex_lock});
      break;
    case k___pe_use_run:
      explorer.note({kRun | argument % kRunBits, true, true});
      break;
    case k___pe_stop:
      explorer.note({kRun | number, true, true});
      break;
    case k___pe_turn:
      if (!check_->is_delayed(number)) explorer.note({kHeap, true, true});
      break;
    default:
      break;
  }
  return number;
}

uint32_t PeRun::place_of_call(uint32_t tasklet) const {
  constexpr uint32_t kSavedRegisters = 6;  // door.cpp
  uint64_t place;
  std::memcpy(&place,
              reinterpret_cast<const void *>(tasklets_[tasklet].at_call.stack +
                                             kSavedRegisters * sizeof place),
              sizeof place);
  return static_cast<uint32_t>(place);
}

uint8_t *PeRun::own_bytes(uint32_t address, uint64_t bytes) const {
  const auto wram = reinterpret_cast<uintptr_t>(place_.wram);
  const bool is_own = (address >= wram && address - wram <= wram_bytes_ &&
                       bytes <= wram_bytes_ - (address - wram)) ||
                      stacks_.contains(address, bytes);
  return is_own ? reinterpret_cast<uint8_t *>(static_cast<uintptr_t>(address)) : nullptr;
}

}  // namespace dpuemu
