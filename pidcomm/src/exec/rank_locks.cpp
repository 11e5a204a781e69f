#include "exec/rank_locks.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

namespace pidcomm {

bool share_a_rank(const std::vector<struct dpu_rank_t *> &a,
                  const std::vector<struct dpu_rank_t *> &b) {
  const std::less<> is_before;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) return true;
    is_before(*i, *j) ? ++i : ++j;
  }
  return false;
}

/// The calls of the process, in their order.
struct RankLocks::Queue {
  std::mutex mutex;  // guards `entries`
  std::condition_variable changed;
  std::list<Entry> entries;
};

RankLocks::Queue &RankLocks::all_calls() {
  static Queue *const queue = [] {
    auto made = std::make_unique<Queue>();
    const int status = pthread_atfork(
        [] { RankLocks::all_calls().mutex.lock(); }, [] { RankLocks::all_calls().mutex.unlock(); },
        [] {
          // without the waiting threads of the parent process
          new (&RankLocks::all_calls().changed) std::condition_variable;
          RankLocks::all_calls().mutex.unlock();
        });
    if (status != 0) throw std::bad_alloc();
    return made.release();  // never destroyed: threads may use it while the process exits
  }();
  return *queue;
}

RankLocks::RankLocks(std::vector<struct dpu_rank_t *> ranks) : ranks_(std::move(ranks)) {
  std::sort(ranks_.begin(), ranks_.end(), std::less<>());
}

RankLocks::Ticket RankLocks::queue(Mode mode) {
  const std::lock_guard<std::mutex> lock(all_calls().mutex);
  return Ticket(all_calls().entries.insert(all_calls().entries.end(), Entry{ranks_, mode}));
}

RankLocks::Ticket RankLocks::lock(Mode mode) {
  Ticket ticket = queue(mode);
  ticket.wait();
  return ticket;
}

bool RankLocks::are_in_use() {
  const std::lock_guard<std::mutex> lock(all_calls().mutex);
  return std::any_of(all_calls().entries.begin(), all_calls().entries.end(),
                     [this](const Entry &entry) { return share_a_rank(entry.ranks, ranks_); });
}

/// The caller holds the mutex.
bool RankLocks::Ticket::is_first_locked() const {
  const Entry &own = **entry_;
  return std::none_of(all_calls().entries.begin(), *entry_, [&own](const Entry &earlier) {
    return (own.mode == Mode::exclusive || earlier.mode == Mode::exclusive) &&
           share_a_rank(own.ranks, earlier.ranks);
  });
}

void RankLocks::Ticket::wait() const {
  std::unique_lock<std::mutex> lock(all_calls().mutex);
  all_calls().changed.wait(lock, [this] { return is_first_locked(); });
}

bool RankLocks::Ticket::is_first() const {
  const std::lock_guard<std::mutex> lock(all_calls().mutex);
  return is_first_locked();
}

RankLocks::Ticket::~Ticket() {
  if (!entry_) return;
  const std::lock_guard<std::mutex> lock(all_calls().mutex);
  all_calls().entries.erase(*entry_);
  all_calls().changed.notify_all();
}

}  // namespace pidcomm
