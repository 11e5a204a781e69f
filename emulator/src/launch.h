// Loading and running programs on sets.
#pragma once

#include <dpuemu.h>

#include <span>

#include "machine.h"
#include "program.h"

namespace dpuemu {

/// Gives every member of the set the program. Errors: as Rank::open_transfer, DPU_ERR_SYSTEM; and then nothing has changed.
dpu_error_t load_program(const PinnedSet &set, const Program &program);

/// Runs the programs of the set's members and waits for their ends. Errors: DPU_ERR_NO_PROGRAM_LOADED, as Rank::begin_run, DPU_ERR_SYSTEM,
/// and then no PE has run; DPU_ERR_DPU_FAULT.
dpu_error_t run_programs(const PinnedSet &set);
/// Lets them run after the earlier work of their ranks. Errors of the run are those of the ranks' asynchronous work.
dpu_error_t queue_programs(const PinnedSet &set);

/// Adds what these PEs of the rank (a bit set by dpu_index) did in their last launch.
void add_to_report(const Rank &rank, uint64_t dpus, dpuemu_report_t &report);

}  // namespace dpuemu
