// Tells an attached debugger about the code of PE programs, so that it finds their functions,
// source lines and variables, and about the tasklets and the memory of PEs.
#pragma once

#include <cstdint>
#include <span>

#include "machine/pe.h"
#include "machine/program.h"

namespace dpuemu {

/// Returns whether a debugger traces this process.
bool is_debugger_attached();

/// Announces the program of one PE, after the code of the PE is complete. Announces only the PE
/// that DPUEMU_DEBUG_PE names (RANK.CHIP.BANK), if any, and at most 64 PEs, because debuggers need
/// long for many programs. file: the program file.
void announce_code(std::span<const uint8_t> file, const PePlace &place, uint32_t rank,
                   uint32_t dpu_index);

/// Withdraws the announcement for a PE, if any, before the code of the PE changes.
void withdraw_code(const PePlace &place);

/// A run for debuggers. The commands for GDB (python/dpuemu/in_gdb) read this structure, in this
/// order, from the memory of the process or from a core file. The values of State and WaitKind of
/// PeRun and CodeRun, and the frames of door.h, are known there too. A pointer to a member of a
/// tasklet points to the member of tasklet 0. The member of tasklet i is i * tasklet_bytes later.
struct DebuggedRun {
  /// All existing runs are in a list.
  DebuggedRun();
  ~DebuggedRun();
  DebuggedRun(const DebuggedRun &) = delete;
  DebuggedRun &operator=(const DebuggedRun &) = delete;

  DebuggedRun *next;
  PePlace place = {};  // of the PE; nullptr between runs
  uint64_t is_machine_code = 0, tasklets = 0, tasklet_bytes = 0;
  const void *woken = nullptr;  // bit set of the tasklets to run now, 4 bytes
  const void *state = nullptr;  // 1 byte
  // Machine code: what a tasklet waits for (4 bytes), its registers, the number of its instruction.
  const uint32_t *awaited = nullptr, *registers = nullptr, *pc = nullptr;
  // Other programs: what a tasklet waits for, its stack pointer, the address of an Interrupted.
  const void *wait_kind = nullptr, *interrupted = nullptr;
  const uint32_t *wait_key = nullptr;
  const uint64_t *stack = nullptr;
  uint64_t stack_end = 0;                  // the end of the block of tasklet 0
  const uint8_t *mutex_holders = nullptr;  // by mutex
  // The copy of MRAM for direct accesses: its address, whether it is in use (1 byte), and a bit set
  // of its filled pages.
  const uint64_t *copy = nullptr, *copy_pages = nullptr;
  const bool *has_copy = nullptr;
};

/// Makes the memory of a PE known to debuggers.
void show_memory(uint32_t rank, uint32_t dpu_index, const uint8_t *region, const uint8_t *wram);
/// Sets the value of unwritten bytes of MRAM.
void show_unwritten(uint8_t byte);

/// Lets an attached debugger stop at a fault, with the code of the PE announced. program: of the
/// PE.
void stop_at_fault(const DebuggedRun &run, const Program &program, const PeFault &fault);

}  // namespace dpuemu
