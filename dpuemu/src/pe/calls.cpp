// The calls of runtime/calls.h. Each call runs at the modelled time at which its tasklet makes the
// call. The arguments of a call are 32-bit words.
#include <algorithm>
#include <cstring>

#include "base/address_map.h"
#include "machine/machine.h"
#include "pe/format.h"
#include "pe/run_calls.h"

namespace dpuemu {
namespace {

constexpr uint32_t kEalready = 7;  // the value of EALREADY in the PE's errno.h

enum CounterMode : uint32_t { kDisableBoth = 6, kEnableBoth = 7 };

// The layouts of these structs match barrier.h, sem.h and vmutex.h of PE programs.
struct PeBarrier {
  uint8_t wait_queue, count, initial_count, lock;
};
struct PeSemaphore {
  uint8_t wait_queue;
  int8_t count, initial_count;
  uint8_t lock;
};
struct PeVirtualMutex {
  uint32_t bits, hardware_mutexes;
  uint8_t mask;
};

template <class T>
T *as(uint8_t *bytes) {
  return reinterpret_cast<T *>(bytes);
}

#define DPUEMU_FAULT_CODE(code, name, reason) PE_FAULT_##name = code,
enum ProgramFault : uint32_t { PE_FAULT_TABLE(DPUEMU_FAULT_CODE) };
#undef DPUEMU_FAULT_CODE

constexpr struct {
  ProgramFault code;
  const char *reason;
} kProgramFaults[] = {
#define DPUEMU_FAULT_ROW(code, name, reason) {PE_FAULT_##name, reason},
    PE_FAULT_TABLE(DPUEMU_FAULT_ROW)
#undef DPUEMU_FAULT_ROW
};

}  // namespace

PeRun::After PeRun::call___pe_exit(uint32_t tasklet, const uint32_t *) {
  tasklets_[tasklet].state = State::kEnded;
  return After::kStay;
}

PeRun::After PeRun::call___pe_fault(uint32_t tasklet, const uint32_t *arguments) {
  const auto *row = std::find_if(std::begin(kProgramFaults), std::end(kProgramFaults),
                                 [&](auto &r) { return r.code == arguments[0]; });
  if (row == std::end(kProgramFaults))
    return fault(FaultKind::kProgram, tasklet, "fault number " + std::to_string(arguments[0]));
  std::string detail;
  if (row->code == PE_FAULT_ASSERT_FAILED || row->code == PE_FAULT_ASSEMBLY)
    detail = ": " + pe_->program->text_at(arguments[1]);
  if (row->code == PE_FAULT_FAULT_INSTRUCTION)
    detail.append(" ").append(std::to_string(arguments[1]));
  return fault(FaultKind::kProgram, tasklet, row->reason + detail);
}

// --- DMA

PeRun::After PeRun::transfer_checked(uint32_t tasklet, uint32_t mram_address, uint32_t wram_address,
                                     uint32_t bytes, bool is_read) {
  const char *const name = is_read ? "mram_read" : "mram_write";
  PeReport &report = pe_->report;
  // The hardware drops the low three bits of addresses, and keeps 8 bits of size / 8 - 1.
  const uint32_t moved = ((bytes / 8 - 1) % 256 + 1) * 8;
  const uint32_t offset = mram_address & (PE_MRAM_BYTES - 1) & ~kWordMask;
  const uint32_t wram = wram_address & ~kWordMask;
  const auto refuse = [&](const std::string &rule) {
    const std::string call =
        std::string(name) + " of " + std::to_string(bytes) + " bytes, " + mram_place(mram_address);
    return fault(FaultKind::kDma, tasklet, call + rule);
  };
  if (mram_address >= PE_MRAM_BYTES && mram_address - PE_MRAM_ORIGIN >= PE_MRAM_BYTES)
    return refuse(": outside MRAM");
  if (offset + moved > PE_MRAM_BYTES) return refuse(": beyond the end of MRAM");
  if (is_strict_) {
    if (mram_address & kWordMask) return refuse(": the MRAM address must be a multiple of 8");
    if (wram_address & kWordMask)
      return refuse(", " + wram_place(wram_address) + ": the WRAM address must be a multiple of 8");
    if (moved != bytes) return refuse(": the size must be a multiple of 8 from 8 to 2048");
  }
  report.masked_addresses += ((mram_address & kWordMask) != 0) + ((wram_address & kWordMask) != 0);
  report.masked_sizes += moved != bytes;

  uint8_t *const own = own_bytes(wram, moved);
  if (own == nullptr) {
    const std::string call =
        std::string(name) + " of " + std::to_string(moved) + " bytes, " + mram_place(mram_address);
    return fault(
        FaultKind::kDma, tasklet,
        call + ", reaches " + wram_place(own_bytes(wram, 1) == nullptr ? wram : wram + moved - 1));
  }
  if (snapshot_ != nullptr && !is_read) snapshot_->before_write(offset, moved);
  const After after = move(tasklet, offset, own, moved, is_read);
  if (check_ != nullptr) {
    const bool is_rounded = ((mram_address | wram_address) & kWordMask) != 0 || moved != bytes;
    check_->transfer(tasklet, offset, address_of(own), moved, is_read,
                     is_read && direct_mram_.has_page(offset), is_rounded, place_of_call(tasklet));
  }
  return after;
}

// --- Barriers, semaphores, handshakes

PeRun::After PeRun::call_barrier_wait(uint32_t tasklet, const uint32_t *arguments) {
  auto *const barrier = as<PeBarrier>(own_bytes(arguments[0], sizeof(PeBarrier)));
  if (barrier == nullptr)
    return fault(FaultKind::kMemory, tasklet,
                 std::string("barrier_wait") + " got " + wram_place(arguments[0]));
  if (check_ != nullptr)
    check_->arrive_at_barrier(tasklet, arguments[0], barrier->initial_count,
                              place_of_call(tasklet));
  if (barrier->count > 1) {
    --barrier->count;
    return wait(tasklet, WaitKind::kBarrier, arguments[0]);
  }
  uint32_t passing = 1u << tasklet;
  for (uint32_t waiter;
       (waiter = first_waiter(WaitKind::kBarrier, arguments[0])) != PE_MAX_TASKLETS;) {
    wake(waiter);
    passing |= 1u << waiter;
  }
  if (check_ != nullptr) check_->pass_barrier(passing, arguments[0]);
  barrier->count = barrier->initial_count;
  return After::kGoOn;
}

PeRun::After PeRun::call_sem_take(uint32_t tasklet, const uint32_t *arguments) {
  auto *const semaphore = as<PeSemaphore>(own_bytes(arguments[0], sizeof(PeSemaphore)));
  if (semaphore == nullptr)
    return fault(FaultKind::kMemory, tasklet,
                 std::string("sem_take") + " got " + wram_place(arguments[0]));
  --semaphore->count;
  if (semaphore->count >= 0 && check_ != nullptr)
    check_->acquire(tasklet, PeCheck::Lock::kSemaphore, arguments[0]);
  return semaphore->count < 0 ? wait(tasklet, WaitKind::kSemaphore, arguments[0]) : After::kGoOn;
}

PeRun::After PeRun::call_sem_give(uint32_t tasklet, const uint32_t *arguments) {
  auto *const semaphore = as<PeSemaphore>(own_bytes(arguments[0], sizeof(PeSemaphore)));
  if (semaphore == nullptr)
    return fault(FaultKind::kMemory, tasklet,
                 std::string("sem_give") + " got " + wram_place(arguments[0]));
  ++semaphore->count;
  if (check_ != nullptr) check_->release(tasklet, PeCheck::Lock::kSemaphore, arguments[0]);
  if (const uint32_t waiter = first_waiter(WaitKind::kSemaphore, arguments[0]);
      waiter != PE_MAX_TASKLETS) {
    wake(waiter);
    if (check_ != nullptr) check_->acquire(waiter, PeCheck::Lock::kSemaphore, arguments[0]);
  }
  return After::kGoOn;
}

PeRun::After PeRun::call_handshake_notify(uint32_t tasklet, const uint32_t *) {
  const uint32_t waiter = first_waiter(WaitKind::kNotified, tasklet);
  if (waiter == PE_MAX_TASKLETS) return wait(tasklet, WaitKind::kNotifier, tasklet);
  wake(waiter);
  if (check_ != nullptr) check_->meet(tasklet, waiter);
  return After::kGoOn;
}

PeRun::After PeRun::call_handshake_wait_for(uint32_t tasklet, const uint32_t *arguments) {
  const uint32_t notifier = arguments[0];
  Tasklet &own = tasklets_[tasklet];
  own.result = 0;
  if (first_waiter(WaitKind::kNotified, notifier) != PE_MAX_TASKLETS) {
    own.result = kEalready;
    return After::kGoOn;
  }
  if (first_waiter(WaitKind::kNotifier, notifier) == PE_MAX_TASKLETS)
    return wait(tasklet, WaitKind::kNotified, notifier);
  wake(notifier);
  if (check_ != nullptr) check_->meet(tasklet, notifier);
  return After::kGoOn;
}

// --- Mutexes

void PeRun::refuse_mutex(uint32_t tasklet) {
  fault(FaultKind::kMutex, tasklet,
        "a mutex call got an address that is not a mutex; define it with MUTEX_INIT or "
        "ATOMIC_BIT_INIT");
}

void PeRun::check_mutex(uint32_t tasklet) {
  const uint32_t address = tasklets_[tasklet].at_call.arguments[0];
  const bool is_mutex = address - address_of(place_.wram + PE_ATOMIC_ORIGIN) < PE_ATOMIC_BYTES;
  const uint32_t number = address % PE_ATOMIC_BYTES;
  check_->lock(tasklet, PeCheck::Lock::kMutex, number, place_of_call(tasklet));
  if (!is_mutex) check_->report_no_mutex(tasklet, number, place_of_call(tasklet));
}

PeRun::After PeRun::call_mutex_trylock(uint32_t tasklet, const uint32_t *arguments) {
  uint8_t *const mutex = mutex_at(tasklet, arguments[0]);
  if (mutex == nullptr) return After::kStay;
  const bool is_free = *mutex == 0;
  tasklets_[tasklet].result = is_free;
  if (is_free) mutex_holders_[arguments[0] % PE_ATOMIC_BYTES] = static_cast<uint8_t>(tasklet);
  *mutex = 1;
  if (is_free && check_ != nullptr) check_mutex(tasklet);
  if (!is_free && check_ != nullptr && check_->explorer() != nullptr)
    check_->explorer()->note_waiting(tasklet);
  return After::kGoOn;
}

PeRun::VirtualMutex PeRun::virtual_mutex_at(uint32_t tasklet, const uint32_t *arguments) {
  const auto *const mutexes = as<PeVirtualMutex>(own_bytes(arguments[0], sizeof(PeVirtualMutex)));
  const uint32_t id = arguments[1] & 0xFFFF;
  uint8_t *const byte = mutexes != nullptr ? own_bytes(mutexes->bits + id / 8, 1) : nullptr;
  if (byte == nullptr) {
    fault(FaultKind::kMutex, tasklet, std::string("a vmutex") + " got " + wram_place(arguments[0]));
    return {};
  }
  return {byte, static_cast<uint8_t>(1 << id % 8), (mutexes->bits % PE_WRAM_BYTES) * 8 + id};
}

PeRun::After PeRun::call_vmutex_lock(uint32_t tasklet, const uint32_t *arguments) {
  const VirtualMutex mutex = virtual_mutex_at(tasklet, arguments);
  if (mutex.byte == nullptr) return After::kStay;
  if (*mutex.byte & mutex.bit) return wait(tasklet, WaitKind::kVirtualMutex, mutex.number);
  *mutex.byte |= mutex.bit;
  if (check_ != nullptr)
    check_->lock(tasklet, PeCheck::Lock::kVirtualMutex, mutex.number, place_of_call(tasklet));
  return After::kGoOn;
}

PeRun::After PeRun::call_vmutex_unlock(uint32_t tasklet, const uint32_t *arguments) {
  const VirtualMutex mutex = virtual_mutex_at(tasklet, arguments);
  if (mutex.byte == nullptr) return After::kStay;
  if (check_ != nullptr) check_->unlock(tasklet, PeCheck::Lock::kVirtualMutex, mutex.number);
  if (const uint32_t waiter = first_waiter(WaitKind::kVirtualMutex, mutex.number);
      waiter != PE_MAX_TASKLETS) {
    wake(waiter);
    if (check_ != nullptr)
      check_->lock(waiter, PeCheck::Lock::kVirtualMutex, mutex.number, place_of_call(waiter));
  } else {
    *mutex.byte &= static_cast<uint8_t>(~mutex.bit);
  }
  return After::kGoOn;
}

// --- Instructions of DPU assembly

PeRun::After PeRun::transfer_units(uint32_t tasklet, const uint32_t *arguments, bool is_read) {
  constexpr uint32_t kUnits = 256, kUnitBytes = 8, kHighestByte = 24;
  // The program may have added units to an address of this process, of WRAM or of the tasklet's
  // stack: subtract them again.
  const auto is_place = [&](uint32_t address) {
    return address - address_of(place_.wram) < wram_bytes_ || stacks_.owner(address) == tasklet;
  };
  uint32_t units = 0, places = 0;
  for (uint32_t i = 0; i < kUnits; ++i) {
    if (!is_place(arguments[0] - (i << kHighestByte))) continue;
    units = i;
    ++places;
  }
  if (places > 1)
    return fault(FaultKind::kDma, tasklet,
                 "the WRAM address " + hexadecimal(arguments[0]) +
                     " of a DMA instruction, whose highest byte has a length, means two places of "
                     "the emulator; write the length in the immediate");
  const uint32_t bytes = ((units + arguments[2]) % kUnits + 1) * kUnitBytes,
                 wram = arguments[0] - (units << kHighestByte);
  return check_ == nullptr ? transfer(tasklet, arguments[1], wram, bytes, is_read)
                           : transfer_checked(tasklet, arguments[1], wram, bytes, is_read);
}

PeRun::After PeRun::call___pe_ldma(uint32_t tasklet, const uint32_t *arguments) {
  return transfer_units(tasklet, arguments, true);
}

PeRun::After PeRun::call___pe_sdma(uint32_t tasklet, const uint32_t *arguments) {
  return transfer_units(tasklet, arguments, false);
}

PeRun::After PeRun::call___pe_stop(uint32_t tasklet, const uint32_t *) {
  if (check_ != nullptr) check_->release(tasklet, PeCheck::Lock::kSemaphore, tasklet);
  return wait(tasklet, WaitKind::kResume, tasklet);
}

/// A tasklet runs unless it has ended or its wait stops it on a DPU. A tasklet that has ended would
/// end again after a resume.
PeRun::After PeRun::call___pe_use_run(uint32_t tasklet, const uint32_t *arguments) {
  const uint32_t bit = arguments[0] % kRunBits, instruction = arguments[1];
  const std::string name = "tasklet " + std::to_string(bit);
  uint64_t &was_set = tasklets_[tasklet].result;
  if (bit >= Machine::instance().chip().tasklets) {
    const uint64_t mask = UINT64_C(1) << bit;
    was_set = (other_run_bits_ & mask) != 0;
    if (instruction == PE_RESUME) other_run_bits_ |= mask;
    if (instruction == PE_CLR_RUN) other_run_bits_ &= ~mask;
    return After::kGoOn;
  }
  if (instruction == PE_CLR_RUN)
    return fault(FaultKind::kInstruction, tasklet,
                 "clr_run of " + name + " is not supported; use stop");
  const Tasklet &other = tasklets_[bit];
  was_set = bit == tasklet || (other.state != State::kEnded && !is_stopped(other));
  if (was_set) return After::kGoOn;
  if (instruction == PE_RESUME && bit >= pe_->program->tasklets())
    return fault(FaultKind::kInstruction, tasklet,
                 "resume of " + name + ", but the program has " +
                     std::to_string(pe_->program->tasklets()) + " tasklets");
  if (other.state == State::kEnded) return After::kGoOn;
  if (instruction == PE_RESUME && other.wait_kind != WaitKind::kResume)
    return fault(FaultKind::kInstruction, tasklet,
                 "resume of " + name + ", which waits " + awaited(other));
  // The resumed tasklet sees all stores before the resume, and the other one those before the stop.
  if (check_ != nullptr) check_->acquire(tasklet, PeCheck::Lock::kSemaphore, bit);
  if (instruction != PE_RESUME) return After::kGoOn;
  wake(bit);
  if (check_ != nullptr) {
    check_->release(tasklet, PeCheck::Lock::kSemaphore, bit);
    check_->acquire(bit, PeCheck::Lock::kSemaphore, bit);
  }
  return After::kGoOn;
}

// --- Queues between the host and the PE

PeRun::After PeRun::call___pe_await_host(uint32_t, const uint32_t *) { return After::kGoOn; }

// --- The allocators of WRAM

/// Tasklets that are behind in modelled time run first. So tasklets allocate and free in the order
/// of modelled time.
PeRun::After PeRun::call___pe_turn(uint32_t, const uint32_t *) { return After::kGoOn; }

// --- The performance counters: one of cycles and one of instructions.

PeRun::After PeRun::call_perfcounter_get(uint32_t tasklet, const uint32_t *) {
  const auto instructions = static_cast<double>(clock_.instructions());
  tasklets_[tasklet].result = shows_instructions_ ? instruction_counter_.value(instructions)
                                                  : cycle_counter_.value(clock_.cycles());
  return After::kGoOn;
}

PeRun::After PeRun::call_perfcounter_config(uint32_t tasklet, const uint32_t *arguments) {
  const uint32_t mode = arguments[0];
  if ((mode == kEnableBoth || mode == kDisableBoth) && !has_both_counters_)
    return fault(FaultKind::kProgram, tasklet,
                 "perfcounter_config got mode " + std::to_string(mode) + ", which needs chip v1B");
  call_perfcounter_get(tasklet, nullptr);
  const bool resets = (arguments[1] & 0xFF) != 0;
  using Counter = PerformanceCounter;
  const auto counts = [&](const Counter &counter, Counter::Mode own) {
    return mode == Counter::kSame ? counter.runs() : mode == own || mode == kEnableBoth;
  };
  cycle_counter_.set(clock_.cycles(), counts(cycle_counter_, Counter::kCycles), resets);
  instruction_counter_.set(static_cast<double>(clock_.instructions()),
                           counts(instruction_counter_, Counter::kInstructions), resets);
  if (mode == Counter::kInstructions) shows_instructions_ = true;
  if (mode == Counter::kCycles || mode == kEnableBoth) shows_instructions_ = false;
  return After::kGoOn;
}

PeRun::After PeRun::call___pe_read_counters(uint32_t tasklet, const uint32_t *arguments) {
  if (!has_both_counters_)
    return fault(FaultKind::kProgram, tasklet, "perfcounter_get_both needs chip v1B");
  const uint64_t values[] = {
      cycle_counter_.value(clock_.cycles()),
      instruction_counter_.value(static_cast<double>(clock_.instructions()))};
  uint8_t *const pair = own_bytes(arguments[0], sizeof values);
  if (pair == nullptr)
    return fault(FaultKind::kMemory, tasklet,
                 std::string("perfcounter_get_both") + " got " + wram_place(arguments[0]));
  std::memcpy(pair, values, sizeof values);
  const uint32_t restart[] = {kEnableBoth, arguments[1]};
  return call_perfcounter_config(tasklet, restart);
}

// --- Marks of a program for traces

PeRun::After PeRun::call___pe_region(uint32_t tasklet, const uint32_t *arguments) {
  if (observer_ == nullptr) return After::kGoOn;
  if (arguments[1] == PE_REGION_BEGIN)
    observer_->begin_region(tasklet, clock_.cycles(), arguments[0]);
  else
    observer_->end_region(tasklet, clock_.cycles());
  return After::kGoOn;
}

// --- Printing

void PeRun::print(const char *bytes, size_t count) {
  const size_t room = pe_->program->stdout_bytes() -
                      std::min<size_t>(pe_->log.size(), pe_->program->stdout_bytes());
  if (count > room) pe_->log_status = DPU_ERR_LOG_BUFFER_TOO_SMALL;
  pe_->log.append(bytes, std::min(count, room));
}

PeRun::After PeRun::call___pe_print_bytes(uint32_t tasklet, const uint32_t *arguments) {
  const uint8_t *bytes = own_bytes(arguments[0], arguments[1]);
  if (bytes == nullptr)
    return fault(FaultKind::kMemory, tasklet,
                 std::string("puts or putchar") + " got " + wram_place(arguments[0]));
  print(reinterpret_cast<const char *>(bytes), arguments[1]);
  return After::kGoOn;
}

PeRun::After PeRun::call___pe_print_format(uint32_t tasklet, const uint32_t *arguments) {
  std::string text, problem;
  const auto bytes_at = [this](uint32_t address, uint64_t bytes) -> const uint8_t * {
    return own_bytes(address, bytes);
  };
  if (!format_for_pe(arguments[0], arguments[1], bytes_at, text, problem))
    return fault(FaultKind::kFormat, tasklet, problem);
  print(text.data(), text.size());
  return After::kGoOn;
}

}  // namespace dpuemu
