// Carries out the form of a plan: its sweeps, one after another.
#pragma once

#include "exec/prepared_sweep.h"
#include "exec/sweep_pass.h"
#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// Carries out the form of a plan over acquired ranks, and adds the bytes of item buffers to the
/// trace. Does nothing for an SdkForm. tile: the sweep of a TileForm, or null. Errors: ERR_MEMORY
/// (the destination window is undefined), std::bad_alloc (no byte has moved, or PEs have reordered
/// blocks).
void run_form(const HostPass &pass, SweepRun *tile, pidcomm_trace &trace);

}  // namespace pidcomm
