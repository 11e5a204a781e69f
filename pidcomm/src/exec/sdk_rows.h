// Carries out collectives with transfers of the SDK and rows in host memory.
#pragma once

#include "exec/host_buffer.h"
#include "exec/placement.h"
#include "line_kernels/kernels.h"
#include "plan/plan.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Whether a hypercube has all PEs of its set. Errors: ERR_DEVICE.
bool is_whole(struct dpu_set_t set, const Placement &placement);

/// Carries out a plan in three phases: the SDK transfers data from the PEs to a buffer, the host
/// works on the buffer (with threads and the instructions of `kernels`, or with scalar kernels),
/// and the SDK transfers the result to the PEs. If several PEs share a row, the buffer holds this
/// row only once. The SDK reads and writes host buffers of the caller in place. Fills the phase
/// times and byte counts of the trace. Requires: the buffer has form.staged_bytes. Errors:
/// ERR_DEVICE.
void run_sdk_rows(const Plan &plan, const SdkForm &form, struct dpu_set_t set,
                  const Placement &placement, const Kernels &kernels, std::byte *host,
                  HostBuffer &buffer, pidcomm_trace &trace);

}  // namespace pidcomm
