// The conventional technique: carries out collectives with transfers of the SDK.
#pragma once

#include "exec/host_buffer.h"
#include "exec/placement.h"
#include "line_kernels/kernels.h"
#include "plan/plan.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Carries out a plan in three phases: the SDK transfers data from the PEs to a buffer, the host
/// works on the buffer (with threads and the vector instructions of `kernels`), and the SDK
/// transfers the result to the PEs. If several PEs share a row, the buffer holds this row only
/// once. The SDK reads and writes host buffers of the caller in place. run_conventional fills the
/// phase times and byte counts of the trace. Errors: ERR_DEVICE, ERR_MEMORY (the host has too
/// little memory for the buffer; thrown before any byte moves).
void run_conventional(const Plan &plan, const SdkForm &form, struct dpu_set_t set,
                      const Placement &placement, const Kernels &kernels, std::byte *host,
                      HostBuffer &buffer, pidcomm_trace &trace);

}  // namespace pidcomm
