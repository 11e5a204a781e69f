// Queues asynchronous work of several ranks.
#pragma once

#include <vector>

#include "rank.h"

namespace dpuemu {

struct QueuedWork {
  Rank *rank;
  Rank::Job job;
};

/// Queues all work; if threads or memory run out, throws after queueing a part. Calls never interleave, so all ranks get their shared jobs
/// in the same order.
void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes);

}  // namespace dpuemu
