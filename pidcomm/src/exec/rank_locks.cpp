#include "exec/rank_locks.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

namespace pidcomm {

namespace {

/// Both lists are in the order of the addresses.
bool share_a_rank(const std::vector<struct dpu_rank_t *> &a,
                  const std::vector<struct dpu_rank_t *> &b) {
  const std::less<> is_before;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) return true;
    is_before(*i, *j) ? ++i : ++j;
  }
  return false;
}

}  // namespace

/// The calls of the process, in their order.
struct RankLocks::Calls {
  std::mutex mutex;  // guards `all`
  std::condition_variable changed;
  std::list<Call> all;
};

RankLocks::Calls &RankLocks::calls() {
  static Calls *const calls = [] {
    auto made = std::make_unique<Calls>();
    const int status = pthread_atfork([] { RankLocks::calls().mutex.lock(); },
                                      [] { RankLocks::calls().mutex.unlock(); },
                                      [] {
                                        // without the waiting threads of the parent process
                                        new (&RankLocks::calls().changed) std::condition_variable;
                                        RankLocks::calls().mutex.unlock();
                                      });
    if (status != 0) throw std::bad_alloc();
    return made.release();  // never destroyed: threads may use it while the process exits
  }();
  return *calls;
}

RankLocks::RankLocks(std::vector<struct dpu_rank_t *> ranks) : ranks_(std::move(ranks)) {
  std::sort(ranks_.begin(), ranks_.end(), std::less<>());
}

RankLocks::Turn RankLocks::queue(Mode mode) {
  const std::lock_guard<std::mutex> lock(calls().mutex);
  return Turn(calls().all.insert(calls().all.end(), Call{ranks_, mode}));
}

RankLocks::Turn RankLocks::lock(Mode mode) {
  Turn turn = queue(mode);
  turn.wait();
  return turn;
}

bool RankLocks::are_in_use() {
  const std::lock_guard<std::mutex> lock(calls().mutex);
  return std::any_of(calls().all.begin(), calls().all.end(),
                     [this](const Call &call) { return share_a_rank(call.ranks, ranks_); });
}

/// The caller holds the mutex.
bool RankLocks::Turn::is_first_locked() const {
  const Call &own = **call_;
  return std::none_of(calls().all.begin(), *call_, [&own](const Call &earlier) {
    return (own.mode == Mode::exclusive || earlier.mode == Mode::exclusive) &&
           share_a_rank(own.ranks, earlier.ranks);
  });
}

void RankLocks::Turn::wait() const {
  std::unique_lock<std::mutex> lock(calls().mutex);
  calls().changed.wait(lock, [this] { return is_first_locked(); });
}

bool RankLocks::Turn::is_first() const {
  const std::lock_guard<std::mutex> lock(calls().mutex);
  return is_first_locked();
}

RankLocks::Turn::~Turn() {
  if (!call_) return;
  const std::lock_guard<std::mutex> lock(calls().mutex);
  calls().all.erase(*call_);
  calls().changed.notify_all();
}

}  // namespace pidcomm
