#include "exec/rank_locks.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace pidcomm {

namespace {

std::shared_ptr<FifoLock> lock_of(struct dpu_rank_t *rank) {
  static std::mutex mutex;
  static auto *const locks = new std::map<struct dpu_rank_t *, std::weak_ptr<FifoLock>>;  // threads may use it while the process exits
  const std::lock_guard<std::mutex> guard(mutex);
  std::erase_if(*locks, [](const auto &entry) { return entry.second.expired(); });
  std::weak_ptr<FifoLock> &entry = (*locks)[rank];
  std::shared_ptr<FifoLock> lock = entry.lock();
  if (lock == nullptr) entry = lock = std::make_shared<FifoLock>();
  return lock;
}

}  // namespace

RankLocks::RankLocks(std::vector<struct dpu_rank_t *> ranks) {
  std::sort(ranks.begin(), ranks.end(), std::less<>());
  for (struct dpu_rank_t *rank : ranks) locks_.push_back(lock_of(rank));
}

RankLocks::Guard RankLocks::lock(FifoLock::Mode mode) {
  Guard guard;
  guard.reserve(locks_.size());
  for (const auto &lock : locks_) guard.push_back(lock->lock(mode));
  return guard;
}

bool RankLocks::are_in_use() {
  return std::any_of(locks_.begin(), locks_.end(), [](const auto &lock) { return lock->is_in_use(); });
}

}  // namespace pidcomm
