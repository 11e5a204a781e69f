// Messages with transfers of the SDK.
#pragma once

#include "exec/host_buffer.h"
#include "exec/placement.h"
#include "pidcomm/pidcomm.h"
#include "plan/plan.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Reads the source windows of all PEs, copies the bytes of the messages in host memory, and writes
/// the destination windows of all PEs. If bytes of these windows keep their values, first reads
/// them too. Requires and errors: those of run_sdk_rows.
void run_sdk_messages(const Plan &plan, const SdkForm &form, struct dpu_set_t set,
                      const Placement &placement, HostBuffer &buffer, pidcomm_trace &trace);

}  // namespace pidcomm
