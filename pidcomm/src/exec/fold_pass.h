// Folds on acquired ranks: lines to rows, rows combined in member order, rows to lines.
#pragma once

#include "exec/sweep_pass.h"
#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// Carries out the FoldForm of a plan, and adds the bytes of loaded lines to the trace.
void run_fold(const HostPass &pass, const FoldForm &form, pidcomm_trace &trace);

/// The bytes that run_fold needs at pass.buffer.
uint64_t fold_buffer_bytes(const Plan &plan, const FoldForm &form, int threads);

}  // namespace pidcomm
