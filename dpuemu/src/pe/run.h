// Runs the program of one PE once. The tasklets of the PE run as fibers, in the order of modelled
// time.
//
// A tasklet runs until it makes a call of runtime/calls.h. The instructions that the tasklet
// counted before the call determine the modelled time of the call. The call takes effect at this
// modelled time, and the tasklet resumes when the call no longer has to wait. So tasklets take
// locks in the order of modelled time, and runs are deterministic. A signal of the watch
// (pe_scheduler.h) interrupts a tasklet that computes for long. The tasklet continues at the
// modelled time at which it was interrupted, after all calls before this time. So a loop can wait
// for another tasklet's store; the number of its iterations, and its modelled time, are not
// deterministic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/door.h"
#include "check/pe_check.h"
#include "machine/pe_memory.h"
#include "machine/pe_observer.h"
#include "pe/any_run.h"
#include "pe/direct_mram.h"
#include "pe/performance_counter.h"
#include "pe/snapshot.h"

namespace dpuemu {

class PeRun : public AnyRun {
 public:
  /// Reserves the addresses that runs need. Returns whether the reservation succeeded.
  bool reserve();

  /// Starts every tasklet at the program's entry. If the host has no memory, sets a fault and
  /// returns false. is_accessible: whether the PE's WRAM is accessible, else the host has no
  /// memory. check: the checks of the run, which have begun, or nullptr. snapshot: gets the old
  /// contents of MRAM, or nullptr. observer: gets the events of the run, or nullptr; a run has
  /// checks or an observer. Requires reserve().
  bool begin(Pe &pe, const PePlace &place, const MramPort &port, bool is_strict, bool is_accessible,
             PeCheck *check = nullptr, PeSnapshot *snapshot = nullptr,
             PeObserver *observer = nullptr);

  Step step(Door &door, std::atomic<uint64_t> &turns) override;

  /// Call this function in the handler of a SIGSEGV that a tasklet caused. Returns whether the
  /// tasklet can continue.
  bool handle_memory_fault(uint64_t address) override { return direct_mram_.handle_fault(address); }
  /// Returns the checks of the run, or nullptr.
  PeCheck *check() const override { return check_; }
  /// Returns whether a signal of the watch may interrupt the tasklet at this address. The code that
  /// checks accesses or counts is not interrupted.
  bool is_interruptible(uint64_t address) const override {
    if (observer_ != nullptr) return !observer_->is_counting(address);
    return check_ == nullptr || address - reinterpret_cast<uintptr_t>(place_.text) < PE_TEXT_BYTES;
  }
  /// Returns the value of gs while the tasklets run.
  uint64_t gs_base() const override { return direct_mram_.gs_base(); }

 private:
  // python/dpuemu/in_gdb has the names of the values of both types.
  enum class State : uint8_t { kCalling, kPaused, kTransferring, kWaiting, kEnded };
  enum class WaitKind : uint8_t {
    kBarrier,
    kMutex,
    kVirtualMutex,
    kSemaphore,
    kNotifier,
    kNotified,
    kResume
  };
  struct alignas(64) Tasklet {
    AtCall at_call;
    uint64_t result = 0;  // result of the tasklet's last call
    uint32_t call = 0;
    State state = State::kEnded;
    WaitKind wait_kind = WaitKind::kBarrier;
    uint32_t wait_key = 0;  // address of a barrier or semaphore, number of a mutex, bit or tasklet
    std::unique_ptr<Interrupted> interrupted;  // if a signal interrupted the tasklet
  };
  using Call = After (PeRun::*)(uint32_t tasklet, const uint32_t *arguments);
  struct CallRow;

  static const CallRow kCalls[];

  enum class Watch { kNone, kChecks, kObserver };
  template <Watch kWatch>
  Step step_as(Door &door, std::atomic<uint64_t> &turns);
  template <Watch kWatch>
  [[gnu::always_inline]] void resume(Door &door, std::atomic<uint64_t> &turns, uint32_t tasklet);
  /// With an explorer (check/explorer.h): returns the tasklet that makes the next step, and notes
  /// which locks it uses, or kNobody if no tasklet is ready.
  uint32_t choose_step();
  /// Carries out the call of a tasklet.
  After carry_out(uint32_t tasklet);
  /// The same with checks. The frequent calls have no checks themselves.
  After carry_out_checked(uint32_t tasklet);
  /// The same, and reports what happens to the observer.
  After carry_out_observed(uint32_t tasklet);
  static Wait wait_of(WaitKind kind);
  void finish() override;
  After wait(uint32_t tasklet, WaitKind kind, uint32_t key);
  /// Returns the tasklet that has waited longest for this kind and key, or PE_MAX_TASKLETS if no
  /// tasklet waits for them.
  uint32_t first_waiter(WaitKind kind, uint32_t key) const;
  void wake(uint32_t tasklet, uint64_t result = 0);
  /// Returns whether a tasklet waits by the instruction `stop` on a DPU, not in a loop.
  static bool is_stopped(const Tasklet &tasklet) {
    return tasklet.state == State::kWaiting && tasklet.wait_kind != WaitKind::kMutex &&
           tasklet.wait_kind != WaitKind::kVirtualMutex;
  }
  void fault_by_signal(const Door &door, uint32_t tasklet);
  /// Handles tasklets that wait although no other tasklet runs.
  void end_waiting();

  /// Returns the address after the call that the tasklet makes.
  uint32_t place_of_call(uint32_t tasklet) const;
  /// Return parts of sentences: places in the PE's memory, what a tasklet waits for.
  std::string wram_place(uint32_t address) const;
  std::string mram_place(uint32_t address) const;
  std::string awaited(const Tasklet &tasklet) const;
  std::string place_of(uint32_t tasklet) const override;

  /// Returns the bytes at an address of the program, or nullptr if a byte is outside the PE's
  /// memory.
  uint8_t *own_bytes(uint32_t address, uint64_t bytes) const;
  /// Returns the mutex at the address. If strict mode refuses the address, sets a fault and returns
  /// nullptr.
  uint8_t *mutex_at(uint32_t tasklet, uint32_t address);
  void refuse_mutex(uint32_t tasklet);
  /// Notes that the tasklet has locked the mutex that its call names.
  void check_mutex(uint32_t tasklet);
  /// One bit of a vmutex, and a number that is unique for each bit in WRAM. If the address is
  /// invalid, `byte` is nullptr, and the PE is in fault.
  struct VirtualMutex {
    uint8_t *byte = nullptr;
    uint8_t bit = 0;
    uint32_t number = 0;
  };
  VirtualMutex virtual_mutex_at(uint32_t tasklet, const uint32_t *arguments);
  After transfer(uint32_t tasklet, uint32_t mram_address, uint32_t wram_address, uint32_t bytes,
                 bool is_read);
  After transfer_checked(uint32_t tasklet, uint32_t mram_address, uint32_t wram_address,
                         uint32_t bytes, bool is_read);
  After move(uint32_t tasklet, uint32_t offset, uint8_t *wram, uint32_t bytes, bool is_read);
  /// ldma and sdma. The highest byte of the WRAM address is added to the length.
  After transfer_units(uint32_t tasklet, const uint32_t *arguments, bool is_read);
  void print(const char *bytes, size_t count);

#define DPUEMU_DECLARE_CALL(number, name) \
  After call_##name(uint32_t tasklet, const uint32_t *arguments);
  PE_CALL_TABLE(DPUEMU_DECLARE_CALL)
#undef DPUEMU_DECLARE_CALL

  PeCheck *check_ = nullptr;  // nullptr unless the run is checked
  PeSnapshot *snapshot_ = nullptr;
  PeObserver *observer_ = nullptr;  // nullptr unless the run has a profile or a trace
  PePlace place_ = {};
  uint32_t wram_bytes_ = 0;  // of the machine's chip
  bool has_both_counters_ = false;
  bool is_strict_ = false;
  Stacks stacks_;
  DirectMram direct_mram_;
  Tasklet tasklets_[PE_MAX_TASKLETS];
  uint8_t mutex_holders_[PE_ATOMIC_BYTES] = {};  // the tasklet that has locked the mutex last
  // The list of tasklets that wait for an object with a wait_key, in the order of arrival.
  uint32_t first_waiter_ = PE_MAX_TASKLETS, last_waiter_ = PE_MAX_TASKLETS;
  uint32_t next_waiter_[PE_MAX_TASKLETS] = {};
  uint32_t moved_bytes_ = 0;     // by DMA in this step
  uint64_t other_run_bits_ = 0;  // bits of RUN that belong to no tasklet
  PerformanceCounter cycle_counter_, instruction_counter_;
  bool shows_instructions_ = false;  // perfcounter_get returns the instructions
};

}  // namespace dpuemu
