#include "job_queue.h"

#include <mutex>
#include <utility>

namespace dpuemu {

void enqueue_all(std::vector<QueuedWork> work, bool beside_running_pes) {
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> lock(one_at_a_time);
  for (QueuedWork &entry : work) entry.rank->enqueue(std::move(entry.job), beside_running_pes);
}

}  // namespace dpuemu
