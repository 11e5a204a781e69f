// Loads and runs programs on sets.
#pragma once

#include <dpuemu.h>

#include <span>

#include "machine.h"
#include "program.h"

namespace dpuemu {

/// Loads the program into every member of the set. Errors: as Rank::open_transfer, DPU_ERR_SYSTEM; an error changes nothing.
dpu_error_t load_program(const PinnedSet &set, const Program &program);

/// Runs the programs of the set's members and waits until all have ended. Errors: DPU_ERR_NO_PROGRAM_LOADED, as Rank::begin_run,
/// DPU_ERR_SYSTEM (no PE has run); DPU_ERR_DPU_FAULT.
dpu_error_t run_programs(const PinnedSet &set);
/// Queues the run after the earlier work of its ranks. Errors of the run are errors of the ranks' asynchronous work.
dpu_error_t queue_programs(const PinnedSet &set);

/// Adds the counters of the last launch of these PEs of the rank (a bit set by dpu_index).
void add_to_report(const Rank &rank, uint64_t dpus, dpuemu_report_t &report);

}  // namespace dpuemu
