// The state of a PE between launches, without the PE's memories: its program, and the log, report
// and fault of its last run.
#pragma once

#include <dpu_error.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/address_map.h"
#include "machine/program.h"
#include "runtime/calls.h"

namespace dpuemu {

/// The reasons for which a PE stops before its program ends.
enum class FaultKind : uint8_t {
  kNone,
  kMemory,       // an address outside the PE's memory
  kStack,        // the stack overflowed
  kDivision,     // division by zero
  kInstruction,  // an illegal instruction, or an unknown call
  kDma,          // a DMA outside WRAM, or a DMA that strict mode refuses
  kMutex,        // the address is not a mutex
  kFormat,       // an invalid format string or argument of printf
  kDeadlock,
  kEndless,   // the PE took longer than patience_seconds
  kStopped,   // stopped by the host, or because another PE of the launch is endless
  kNoMemory,  // the host has no more memory
  kProgram,   // reported by the program itself (PE_FAULT_TABLE)
};

struct PeFault {
  FaultKind kind = FaultKind::kNone;
  uint32_t tasklet = 0;
  std::string reason;  // a part of the sentence that dpuemu_get_fault returns; empty for kNoMemory
};

/// Counters of one run. The run counts DMA transfers exactly, and models its time.
struct PeReport {
  uint64_t dma_reads = 0, dma_read_bytes = 0, dma_writes = 0, dma_write_bytes = 0;
  uint64_t masked_addresses = 0, masked_sizes = 0, direct_pages = 0;
  uint64_t waiting_tasklets = 0;
  uint64_t instructions = 0;
  double cycles = 0;
};

/// The loaded program of a PE, or null. Other threads may read it while a queued job loads a
/// program.
class LoadedProgram {
 public:
  LoadedProgram &operator=(const Program *program) {
    if (program_.exchange(program, std::memory_order_acq_rel) != program)
      changes_.fetch_add(1, std::memory_order_release);
    return *this;
  }
  LoadedProgram &operator=(const LoadedProgram &other) {
    return *this = static_cast<const Program *>(other);
  }
  operator const Program *() const { return program_.load(std::memory_order_acquire); }
  const Program *operator->() const { return *this; }

  /// The number of times that the program of any PE has changed.
  static uint64_t changes() { return changes_.load(std::memory_order_acquire); }

 private:
  inline static std::atomic<uint64_t> changes_{0};
  std::atomic<const Program *> program_{nullptr};
};

class CheckedMemory;

struct Pe {
  LoadedProgram program;
  const Program *text = nullptr;    // the program whose text is in the PE's text area
  std::unique_ptr<isa::Code> code;  // if the program has changed its instructions: all of them
  bool has_wram = false;            // whether the WRAM is accessible
  bool has_run = false;             // whether the PE has run since dpu_alloc
  std::string log;                  // output that the host has not read yet
  dpu_error_t log_status = DPU_OK;  // why the host cannot read all output
  PeReport report;
  PeFault fault;
  bool was_accessed = false;               // whether the host had access to the rank's region
  std::shared_ptr<CheckedMemory> checked;  // null without `dpuemu check` (checked_memory.h)
};

/// Writes the sentence about a fault; cuts it to `size` bytes with the terminating zero.
inline void describe_fault(uint32_t rank, uint32_t dpu_index, const PeFault &fault, char *text,
                           size_t size) {
  std::snprintf(
      text, size, "rank %u, chip %u, bank %u, tasklet %u: %s", rank, dpu_index / kBanks,
      dpu_index % kBanks, fault.tasklet,
      fault.kind == FaultKind::kNoMemory ? "the host has no more memory" : fault.reason.c_str());
}

/// Returns RANK.CHIP.BANK, which names a PE in options.
inline std::string short_name(uint32_t rank, uint32_t dpu_index) {
  return std::to_string(rank) + "." + std::to_string(dpu_index / kBanks) + "." +
         std::to_string(dpu_index % kBanks);
}

/// Returns the words that name a PE in sentences.
inline std::string pe_name(uint32_t rank, uint32_t dpu_index) {
  return "rank " + std::to_string(rank) + ", chip " + std::to_string(dpu_index / kBanks) +
         ", bank " + std::to_string(dpu_index % kBanks);
}

}  // namespace dpuemu
