// Asynchronous work of several ranks at once.
#pragma once

#include <vector>

#include "rank.h"

namespace dpuemu {

struct QueuedWork {
  Rank *rank;
  Rank::Job job;
};

/// Queues all of the work or, if a thread or memory is missing, throws after queueing some of it. Two calls never interleave, so ranks that
/// share work see it in the same order.
void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes);

}  // namespace dpuemu
