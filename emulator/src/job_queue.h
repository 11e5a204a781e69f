// Queues asynchronous work of several ranks.
#pragma once

#include <vector>

#include "rank.h"

namespace dpuemu {

struct QueuedWork {
  Rank *rank;
  Rank::Job job;
};

/// Queues all elements of `work`. If the host lacks threads or memory, throws after it has queued a part of the elements. Calls of
/// enqueue_all never interleave, so all ranks get shared jobs in the same order.
void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes);

}  // namespace dpuemu
