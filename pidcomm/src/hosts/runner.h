// Carries out the plan of a host.
#pragma once

#include "exec/executor.h"
#include "hosts/link.h"
#include "hosts/plan.h"

namespace pidcomm {

/// The options of the local collectives, without a PE scratch that the plan refuses.
pidcomm_options local_options(const HostsPlan &plan, const pidcomm_options *options);

/// Runs the local collectives and the exchanges of a plan on which the hosts have agreed.
/// overlaps: whether they may run at the same time. Errors: those of the executor and the link.
pidcomm_trace run_plan(const HostsPlan &plan, Executor &local, Link &link,
                       const pidcomm_options *options, const Memories &memories, bool overlaps);

}  // namespace pidcomm
