// The conventional technique: carries out collectives with transfers of the SDK.
#pragma once

#include "exec/host_buffer.h"
#include "exec/placement.h"
#include "line_kernels/kernels.h"
#include "plan/plan.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Carries out a plan in three phases: the SDK transfers data from the PEs to a buffer, the host works on the buffer (with threads and the
/// vector instructions of `kernels`), and the SDK transfers the result to the PEs. The buffer holds a row that several PEs share only once.
/// Host buffers of the caller are read and written in place. Fills the phase times and byte counts of trace. Errors: ERR_DEVICE, ERR_MEMORY
/// (for the buffer, before any byte moves).
void run_conventional(const Plan &plan, const SdkForm &form, struct dpu_set_t set, const Placement &placement, const Kernels &kernels,
                      std::byte *host, HostBuffer &buffer, pidcomm_trace &trace);

}  // namespace pidcomm
