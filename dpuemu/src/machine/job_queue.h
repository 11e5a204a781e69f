// Queues asynchronous work of several ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "machine/rank.h"

namespace dpuemu {

struct QueuedWork {
  Rank *rank;
  Rank::Job job;
};

/// Queues all elements of `work`. If the host lacks threads or memory, throws after it has queued a
/// part of the elements. Calls of enqueue_all and enqueue_holds never interleave, so all ranks get
/// shared jobs in the same order.
void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes);

/// Queues the hold on each rank, as Rank::enqueue_hold does. Appends the ranks on which the hold
/// has begun to `held`, which has the capacity for all ranks. Throws as enqueue_all does.
void enqueue_holds(std::span<Rank *const> ranks, const std::shared_ptr<RankHold> &hold,
                   bool beside_running_pes, std::vector<Rank *> &held);

}  // namespace dpuemu
