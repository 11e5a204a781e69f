#include "pe_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
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

struct Batch {
  PeBatch work;
  size_t next = 0;       // group to be taken
  size_t running = 0;    // groups taken and not ended
  uint32_t endless = 0;  // PEs that the watch has ended

  /// One endless PE costs its patience, others after it little, and a program that never ends on any PE ends soon.
  uint32_t patience_seconds() const { return endless == 0 ? work.patience_seconds : 1; }
  bool is_given_up() const { return endless >= kMostEndless; }
  static constexpr uint32_t kMostEndless = 8;
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

  void run(const PeGroup &group, bool is_strict) {
    PeRun *active[kChips];
    size_t count = 0;
    for (const PeTask &task : group) {
      PeRun &run = runs_[count];
      run.begin(*task.pe, task.place, task.port, is_strict);
      active[count++] = &run;
    }
    while (count != 0) {
      size_t left = 0;
      for (size_t i = 0; i < count; ++i)
        if (advance(*active[i])) active[left++] = active[i];
      count = left;
    }
  }

  /// Does not run the PEs.
  static void give_up(const PeGroup &group) {
    for (const PeTask &task : group) {
      task.pe->has_run = true;
      task.pe->report = {};
      task.pe->fault = {FaultKind::kEndless, 0, "not started, since other PEs of the launch did not end"};
    }
  }

  /// Called by the watch about once a second.
  void watch() {
    const uint64_t turn = target_.turns.load(std::memory_order_relaxed);
    if (turn != watched_turn_ || batch == nullptr) {
      watched_turn_ = turn;
      watched_seconds_ = 0;
    } else if (++watched_seconds_ >= batch->patience_seconds()) {
      ++batch->endless;
      target_.overdue_turn.store(turn);
      pthread_kill(thread_, SIGURG);
    }
  }

  Batch *batch = nullptr;  // of the group that runs; guarded by the pool's mutex, as is watch()

 private:
  /// Runs the PE to the end of its next DMA. Returns whether it goes on after that.
  bool advance(PeRun &run) {
    target_.run = &run;
    if (const uint64_t base = run.gs_base(); base != gs_base_) set_gs_base(gs_base_ = base);
    PeRun::Step step;
    do step = run.step(target_.door, target_.turns);
    while (step == PeRun::Step::kOther);
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
  uint32_t watched_seconds_ = 0;
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
    while (workers_.size() < threads) {
      auto worker = std::make_unique<Worker>();
      workers_.reserve(workers_.size() + 1);
      std::thread([this, own = worker.get()] { work(*own); }).detach();
      workers_.push_back(std::move(worker));
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
      const bool is_given_up = batch->is_given_up();
      lock.unlock();
      is_given_up ? Worker::give_up(group) : worker.run(group, batch->work.is_strict);
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
      std::this_thread::sleep_for(std::chrono::seconds(1));
      lock.lock();
      for (const auto &worker : workers_) worker->watch();
    }
  }

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;  // for the workers
  std::condition_variable begun_;    // for the watch
  std::deque<std::shared_ptr<Batch>> batches_;  // with groups to be taken
  std::vector<std::unique_ptr<Worker>> workers_;
  uint32_t allowed_ = 0, busy_ = 0;
  bool has_watch_ = false;
};

}  // namespace

void start_pes(PeBatch batch, uint32_t threads) {
  static Pool *const forever = new Pool;
  forever->start(std::move(batch), threads);
}

}  // namespace dpuemu
