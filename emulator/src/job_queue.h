// Queues asynchronous work of several ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "rank.h"

namespace dpuemu {

struct QueuedWork {
  Rank *rank;
  Rank::Job job;
};

/// Queues all elements of `work`. If the host lacks threads or memory, throws after it has queued a part of the elements. Calls of
/// enqueue_all and enqueue_holds never interleave, so all ranks get shared jobs in the same order.
void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes);

/// Calls hold(rank) of each rank as Rank::enqueue_hold does. Throws as enqueue_all does.
void enqueue_holds(std::span<Rank *const> ranks, const std::function<void(Rank *)> &hold, bool beside_running_pes);

}  // namespace dpuemu
