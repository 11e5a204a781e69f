// Functions that load and run PE programs on DPU sets.
#pragma once

#include <dpuemu.h>

#include <span>

#include "machine/machine.h"
#include "machine/program.h"

namespace dpuemu {

/// Loads the program into every member of the set. Errors: those of Rank::open_transfer, and
/// DPU_ERR_SYSTEM. An error leaves all PEs unchanged.
dpu_error_t load_program(const PinnedSet &set, const Program &program);

/// Runs the programs of the set's members and waits until all PEs have ended. Errors before a PE
/// runs: DPU_ERR_NO_PROGRAM_LOADED, those of Rank::begin_run, and DPU_ERR_SYSTEM. Error after the
/// PEs have ended: DPU_ERR_DPU_FAULT.
dpu_error_t run_programs(const PinnedSet &set);
/// Queues the run of the programs after the earlier work of the set's ranks. Errors of the run
/// become errors of the ranks' asynchronous work.
dpu_error_t queue_programs(const PinnedSet &set);

/// A PE in fault; rank is nullptr if no PE is in fault.
struct FaultPlace {
  const Rank *rank;
  uint32_t dpu_index;
};
/// Returns the first member of the set, in the order of ranks and DPUs, that is in fault; if
/// possible, one that was not merely stopped.
FaultPlace first_fault(const PinnedSet &set);

/// Adds the counters of the last launch of some PEs of the rank to `report`, and sets the clock.
/// dpus: these PEs, as a bit set by dpu_index.
void add_to_report(const Rank &rank, uint64_t dpus, dpuemu_report_t &report);

}  // namespace dpuemu
