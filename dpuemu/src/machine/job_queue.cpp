#include "machine/job_queue.h"

#include <mutex>
#include <utility>

namespace dpuemu {

namespace {

std::mutex one_at_a_time;

}  // namespace

void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes) {
  std::lock_guard<std::mutex> lock(one_at_a_time);
  for (QueuedWork &entry : work) entry.rank->enqueue(std::move(entry.job), beside_running_pes);
}

void enqueue_holds(std::span<Rank *const> ranks, const std::shared_ptr<RankHold> &hold,
                   bool beside_running_pes, std::vector<Rank *> &held) {
  std::lock_guard<std::mutex> lock(one_at_a_time);
  for (Rank *rank : ranks)
    if (rank->enqueue_hold(hold, beside_running_pes)) held.push_back(rank);
}

}  // namespace dpuemu
