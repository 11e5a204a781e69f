// Loads and runs programs on sets.
#pragma once

#include <dpuemu.h>

#include <span>

#include "machine.h"
#include "program.h"

namespace dpuemu {

/// Loads the program into every member of the set. Errors: the same as Rank::open_transfer, and DPU_ERR_SYSTEM; after an error, nothing has
/// changed.
dpu_error_t load_program(const PinnedSet &set, const Program &program);

/// Runs the programs of the set's members and waits until all have ended. Errors: DPU_ERR_NO_PROGRAM_LOADED,
/// the same as Rank::begin_run, and DPU_ERR_SYSTEM, all before a PE runs; DPU_ERR_DPU_FAULT.
dpu_error_t run_programs(const PinnedSet &set);
/// Queues the run after the earlier work of its ranks. Errors of the run become errors of the ranks' asynchronous work.
dpu_error_t queue_programs(const PinnedSet &set);

/// Adds the counters of the last launch of these PEs of the rank. The PEs are a bit set by dpu_index.
void add_to_report(const Rank &rank, uint64_t dpus, dpuemu_report_t &report);

}  // namespace dpuemu
