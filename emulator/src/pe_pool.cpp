#include "pe_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "pe_run.h"
#include "pe_signals.h"

namespace dpuemu {
namespace {

constexpr uint32_t kMostThreads = 32;
constexpr std::chrono::milliseconds kWatchPeriod{100};

struct Batch {
  PeBatch work;
  size_t next = 0;     // group to be taken
  size_t running = 0;  // groups taken and not ended

  bool is_stopped() const { return work.is_stopped != nullptr && work.is_stopped->load(std::memory_order_relaxed); }
};

/// A host thread and the places for the PEs it runs.
class Worker {
 public:
  /// Throws std::bad_alloc.
  Worker() {
    for (PeRun &run : runs_)
      if (!run.reserve()) throw std::bad_alloc();
  }

  void attach() {
    thread_ = pthread_self();
    prepare_thread_for_signals(target_);
  }

  void run(const PeGroup &group, const Batch &of) {
    PeRun *active[kChips];
    size_t count = 0;
    for (const PeTask &task : group) {
      PeRun &run = runs_[count];
      run.begin(*task.pe, task.place, task.port, of.work.is_strict);
      active[count++] = &run;
    }
    while (count != 0) {
      size_t left = 0;
      for (size_t i = 0; i < count; ++i)
        if (advance(*active[i], of)) active[left++] = active[i];
      count = left;
    }
  }

  /// Called by the watch every period. Ends a tasklet that has been inside for too long.
  void watch() {
    const uint64_t turn = target_.turns.load(std::memory_order_relaxed);
    const auto now = std::chrono::steady_clock::now();
    if (turn != watched_turn_ || batch == nullptr) {
      watched_turn_ = turn;
      watched_since_ = now;
    } else if (batch->is_stopped() || now - watched_since_ >= std::chrono::seconds(batch->work.patience_seconds)) {
      end_tasklet(thread_, target_, turn);  // again if the last time was just before the tasklet was entered
    }
  }

  Batch *batch = nullptr;  // of the group that runs; guarded by the pool's mutex, as is watch()

 private:
  /// Runs the PE to the end of its next DMA. Returns whether it goes on after that.
  bool advance(PeRun &run, const Batch &of) {
    target_.run = &run;
    if (const uint64_t base = run.gs_base(); base != gs_base_) set_gs_base(gs_base_ = base);
    PeRun::Step step;
    do {
      if (of.is_stopped()) run.stop();
      try {
        step = run.step(target_.door, target_.turns);
      } catch (const std::bad_alloc &) {
        step = run.fail_without_memory();
      }
    } while (step == PeRun::Step::kOther);
    // The program's first direct access has set gs on its way, perhaps just before the end of the run.
    gs_base_ = step == PeRun::Step::kEnded ? kUnknownGs : run.gs_base();
    return step == PeRun::Step::kTransferred;
  }

  static constexpr uint64_t kUnknownGs = UINT64_MAX;

  SignalTarget target_;
  PeRun runs_[kChips];
  uint64_t gs_base_ = 0;  // of this thread
  pthread_t thread_ = {};
  uint64_t watched_turn_ = 0;
  std::chrono::steady_clock::time_point watched_since_;
};

class Pool {
 public:
  void start(PeBatch work, uint32_t threads) {
    install_signal_handlers();
    auto batch = std::make_shared<Batch>();
    batch->work = std::move(work);
    std::lock_guard<std::mutex> lock(mutex_);
    grow(std::clamp(threads, 1u, kMostThreads));
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }

 private:
  void grow(uint32_t threads) {
    if (!has_watch_) {
      std::thread([this] { watch(); }).detach();
      has_watch_ = true;
    }
    try {
      while (workers_.size() < threads) {
        auto worker = std::make_unique<Worker>();
        workers_.reserve(workers_.size() + 1);
        std::thread([this, own = worker.get()] { work(*own); }).detach();
        workers_.push_back(std::move(worker));
      }
    } catch (const std::exception &) {
      if (workers_.empty()) throw;  // else fewer threads do the same work
    }
    allowed_ = threads;
  }

  void work(Worker &worker) {
    worker.attach();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !batches_.empty() && busy_ < allowed_; });
      const std::shared_ptr<Batch> batch = batches_.front();
      const PeGroup &group = batch->work.groups[batch->next++];
      if (batch->next == batch->work.groups.size()) batches_.pop_front();
      ++batch->running;
      if (++busy_ == 1) begun_.notify_one();
      worker.batch = batch.get();
      lock.unlock();
      worker.run(group, *batch);
      lock.lock();
      worker.batch = nullptr;
      --busy_;
      --batch->running;
      changed_.notify_all();
      if (batch->running != 0 || batch->next != batch->work.groups.size()) continue;
      lock.unlock();
      batch->work.on_end();
      lock.lock();
    }
  }

  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      begun_.wait(lock, [this] { return busy_ != 0; });
      lock.unlock();
      std::this_thread::sleep_for(kWatchPeriod);
      lock.lock();
      for (const auto &worker : workers_) worker->watch();
    }
  }

  std::mutex mutex_;                            // guards everything below
  std::condition_variable changed_;             // for the workers
  std::condition_variable begun_;               // for the watch
  std::deque<std::shared_ptr<Batch>> batches_;  // with groups to be taken
  std::vector<std::unique_ptr<Worker>> workers_;
  uint32_t allowed_ = 0, busy_ = 0;
  bool has_watch_ = false;
};

}  // namespace

void start_pes(PeBatch batch, uint32_t threads) {
  if (batch.groups.empty()) return batch.on_end();  // a rank without enabled DPUs
  static std::mutex mutex;
  static Pool *pool = nullptr;
  static pid_t owner = 0;
  Pool *own;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (owner != getpid()) pool = new Pool;  // the threads of a parent process are not in its child
    owner = getpid();
    own = pool;
  }
  own->start(std::move(batch), threads);
}

}  // namespace dpuemu
