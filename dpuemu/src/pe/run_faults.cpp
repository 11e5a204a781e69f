// Faults of a run, and the sentences about them.
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "machine/debug_info.h"
#include "machine/machine.h"
#include "pe/run.h"

namespace dpuemu {
namespace {

constexpr uint32_t kMostFrames = 1000, kMostNamedFrames = 16;

FrameRegisters registers_of(const Interrupted &at) {
  return {{at.rax, at.rdx, at.rcx, at.rbx, at.rsi, at.rdi, at.rbp, at.rsp, at.r8, at.r9, at.r10,
           at.r11, at.r12, at.r13, at.r14, at.r15, at.rip}};
}

}  // namespace

std::string PeRun::wram_place(uint32_t address) const {
  const uint32_t offset = address - address_of(place_.wram);
  if (offset < wram_bytes_)
    return "WRAM address " + pe_->program->address_and_variable(offset, offset);
  if (offset < (1u << 20))
    return "WRAM address " + hexadecimal(offset) + ", beyond the end of WRAM";
  if (const uint32_t owner = stacks_.owner(address); owner < PE_MAX_TASKLETS)
    return "the stack of tasklet " + std::to_string(owner);
  return "address " + hexadecimal(address) + ", outside the PE's memory";
}

std::string PeRun::mram_place(uint32_t address) const {
  const uint32_t offset = address < PE_MRAM_BYTES ? address : address - PE_MRAM_ORIGIN;
  return "MRAM address " + pe_->program->address_and_variable(address, PE_MRAM_ORIGIN + offset);
}

std::string PeRun::place_of(uint32_t number) const {
  const Program &program = *pe_->program;
  const Interrupted *const at = tasklets_[number].interrupted.get();
  FrameRegisters registers;
  const auto read_word = [this](uint64_t address, uint64_t &word) {
    if (!stacks_.contains(address, sizeof word)) return false;
    std::memcpy(&word, reinterpret_cast<const void *>(address), sizeof word);
    return true;
  };
  const auto file_address = [&] {
    return static_cast<uint32_t>(registers.value[FrameRegisters::kRip]) - address_of(place_.text) +
           PE_TEXT_ORIGIN;
  };
  const auto is_in_text = [&] {
    return registers.value[FrameRegisters::kRip] - reinterpret_cast<uintptr_t>(place_.text) <
           program.text_bytes();
  };
  bool is_return_address = at == nullptr;
  if (at != nullptr) {
    registers = registers_of(*at);
  } else {  // the order in which door.h stores the registers
    uint64_t next = tasklets_[number].at_call.stack;
    for (const uint32_t which :
         {15u, 14u, 13u, 12u, FrameRegisters::kRbp, FrameRegisters::kRbx, FrameRegisters::kRip}) {
      if (!read_word(next, registers.value[which])) return "";
      next += sizeof(uint64_t);
    }
    registers.value[FrameRegisters::kRsp] = next;
  }
  if (!is_in_text()) {  // after a call of a wrong address
    is_return_address =
        read_word(registers.value[FrameRegisters::kRsp], registers.value[FrameRegisters::kRip]);
    registers.value[FrameRegisters::kRsp] += sizeof(uint64_t);
  }
  std::string text, last;
  uint32_t named = 0, repeated = 1;
  const auto end_repetition = [&] {
    if (repeated > 1) text.append(" ").append(std::to_string(repeated)).append(" times");
    repeated = 1;
  };
  for (uint32_t frame = 0; frame < kMostFrames && named < kMostNamedFrames && is_in_text();
       ++frame, is_return_address = true) {
    const uint32_t address =
        file_address() - is_return_address;  // the call precedes its return address
    const std::string function = program.function_at(address);
    if (function.empty() || function == "__pe_start") break;
    if (function == last) {
      ++repeated;
    } else if (!function.starts_with(
                   "__pe_")) {  // the user does not know functions of the runtime with such names
      end_repetition();
      text += (named == 0 ? ", in " : named == 1 ? ", called by " : ", ") + function;
      last = function;
      ++named;
    }
    if (!leave_frame(program.debug_frame(), address, registers, read_word)) break;
  }
  end_repetition();
  return named == kMostNamedFrames ? text + ", ..." : text;
}

void PeRun::fault_by_signal(const Door &door, uint32_t tasklet) {
  const auto end = [&](FaultKind kind, std::string reason) {
    tasklets_[tasklet].interrupted = std::make_unique<Interrupted>(door.interrupted);
    fault(kind, tasklet, std::move(reason));
  };
  const uint64_t address = door.signal_address;
  if (door.signal == SIGFPE) return end(FaultKind::kDivision, "division by zero");
  if (door.signal == SIGILL || door.signal == SIGTRAP)
    return end(FaultKind::kInstruction, "an illegal instruction");
  if (direct_mram_.lacks_memory()) {
    fail_without_memory();
    return;
  }
  if (stacks_.owner(address) < PE_MAX_TASKLETS) {
    const std::string declared = std::to_string(pe_->program->stack_bytes(tasklet));
    return end(FaultKind::kStack,
               "the stack overflowed (" + declared + " bytes are declared for it)");
  }
  if (const std::optional<uint32_t> mram = direct_mram_.mram_address_of(address))
    return end(FaultKind::kMemory, "a direct access to MRAM address " + hexadecimal(*mram) +
                                       ", beyond the end of MRAM");
  const std::string act = door.interrupted.rip == address ? "a jump to " : "an access to ";
  const bool is_own_wram = address - reinterpret_cast<uintptr_t>(place_.wram) < PE_WRAM_BYTES;
  if (is_own_wram)
    return end(FaultKind::kMemory, "a jump to " + wram_place(static_cast<uint32_t>(address)));
  if (const std::string other = Machine::instance().wram_owner(address); !other.empty())
    return end(FaultKind::kMemory,
               act + "address " + hexadecimal(address) + ", in the WRAM of " + other);
  // For a non-canonical address, x86-64 reports 0.
  const bool is_low = address <= UINT32_MAX;
  end(FaultKind::kMemory,
      act + (is_low ? wram_place(static_cast<uint32_t>(address))
                    : "address " + hexadecimal(address) + ", outside the PE's memory"));
}

// On a DPU, a tasklet stops while it waits at a barrier, for a semaphore or for a handshake, and a
// DPU with only stopped tasklets is done. A tasklet that waits for a mutex spins, so the DPU is
// never done.
void PeRun::end_waiting() {
  const auto waits = [](const Tasklet &tasklet) { return tasklet.state == State::kWaiting; };
  const auto spins = [&](const Tasklet &tasklet) { return waits(tasklet) && !is_stopped(tasklet); };
  const auto count = std::count_if(std::begin(tasklets_), std::end(tasklets_), waits);
  pe_->report.waiting_tasklets = static_cast<uint64_t>(count);
  if (count == 0 ||
      (!is_strict_ && std::none_of(std::begin(tasklets_), std::end(tasklets_), spins)))
    return;

  std::vector<std::pair<std::string, std::vector<uint32_t>>>
      waiting;  // what tasklets wait for and where, and these tasklets
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    if (!waits(tasklets_[i])) continue;
    const std::string what = awaited(tasklets_[i]) + place_of(i);
    auto same = std::find_if(waiting.begin(), waiting.end(),
                             [&](const auto &entry) { return entry.first == what; });
    if (same == waiting.end()) same = waiting.insert(same, {what, {}});
    same->second.push_back(i);
  }
  std::string reason;
  for (const auto &[what, tasklets] : waiting) {
    const bool is_one = tasklets.size() == 1;
    reason += reason.empty() ? "deadlock: tasklet" : "; tasklet";
    for (const uint32_t tasklet : tasklets)
      reason += (is_one ? " " : tasklet == tasklets[0] ? "s " : ", ") + std::to_string(tasklet);
    reason += (is_one ? " waits " : " wait ") + what;
  }
  fault(FaultKind::kDeadlock, waiting[0].second[0], std::move(reason));
}

std::string PeRun::awaited(const Tasklet &tasklet) const {
  const uint32_t key = tasklet.wait_key;
  switch (tasklet.wait_kind) {
    case WaitKind::kBarrier:
      return "at the barrier at " + wram_place(key);
    case WaitKind::kSemaphore:
      return "for the semaphore at " + wram_place(key);
    case WaitKind::kMutex: {
      const std::string name = pe_->program->variable_at(PE_ATOMIC_ORIGIN + key),
                        holder = std::to_string(mutex_holders_[key]);
      return "for mutex " + std::to_string(key) + " (" + (name.empty() ? "" : name + ", ") +
             "held by tasklet " + holder + ")";
    }
    case WaitKind::kVirtualMutex:
      return "for bit " + std::to_string(key % 8) + " of a vmutex at " +
             wram_place(address_of(place_.wram) + key / 8);
    case WaitKind::kNotifier:
      return "for a handshake_wait_for on tasklet " + std::to_string(key);
    case WaitKind::kNotified:
      return "for a handshake_notify by tasklet " + std::to_string(key);
    case WaitKind::kResume:
      return "for another tasklet to resume it";
  }
  return "";
}

}  // namespace dpuemu
