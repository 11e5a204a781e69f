#include "pe/scheduler.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/worker_pool.h"
#include "check/findings.h"
#include "check/settings.h"
#include "machine/checked_memory.h"
#include "machine/machine.h"
#include "pe/code_run.h"
#include "pe/run.h"
#include "pe/signals.h"
#include "pe/snapshot.h"
#include "profile/profile.h"
#include "trace/pe_trace.h"

namespace dpuemu {
namespace {

constexpr uint32_t kMostThreads = 32;
/// The time between two looks of the watch. The watch interrupts a tasklet that has computed for
/// about a period without a call. After an interruption, the next kShortPeriods periods are short,
/// because loops that wait for another tasklet are interrupted often. The watch counts the CPU time
/// of a thread, because a loaded computer, a debugger or the user may have stopped the thread.
constexpr std::chrono::milliseconds kPeriod{50}, kShortPeriod{1};
constexpr uint32_t kShortPeriods = 20;

struct Batch {
  PeBatch work;
  size_t next = 0;                      // next group to start
  size_t running = 0;                   // number of groups that have started and have not ended
  std::atomic<bool> is_endless{false};  // whether a PE ran for longer than the patience

  /// Returns why the PEs that have not ended must end, or nullptr.
  const char *stop_reason() const {
    if (work.is_stopped != nullptr && work.is_stopped->load(std::memory_order_relaxed))
      return "stopped by the host";
    return is_endless.load(std::memory_order_relaxed)
               ? "stopped because another PE ran for longer than DPUEMU_PATIENCE"
               : nullptr;
  }
};

/// The runs of the PEs that one host thread executes together, and the thread's stack for signal
/// handlers. A thread of the pool borrows a Runner only while it runs PEs.
class Runner {
 public:
  /// Throws std::bad_alloc.
  Runner() {
    for (PeRun &run : runs_)
      if (!run.reserve()) throw std::bad_alloc();
  }

  /// Lets the calling thread run PEs until detach().
  void attach() {
    thread_ = pthread_self();
    gs_base_ = kUnknownGs;
    signals_.attach();
  }
  void detach() { signals_.detach(); }

  void run(const PeGroup &group, Batch &of) {
    ++progress_;
    if ((of.work.is_strict || of.work.is_checked) && !of.work.awaits_host) {
      for (const PeTask &task : group) run_alone(task, of);
      return;
    }
    AnyRun *active[kChips];
    size_t count = 0;
    uint32_t entered = 0;  // bit set of the tasks whose WRAM this function has made accessible
    for (size_t i = 0; i < group.size(); ++i) {
      const PeTask &task = group[i];
      if (of.work.is_strict && task.places->enter(task.dpu_index)) entered |= 1u << i;
      const bool is_accessible = !of.work.is_strict || (entered >> i & 1) != 0;
      if (AnyRun *const run =
              begin_run(task, of, count, begin_check(task, of, count), nullptr, is_accessible))
        active[count++] = run;
    }
    while (count != 0) {
      size_t left = 0;
      for (size_t i = 0; i < count; ++i)
        if (advance(*active[i], of)) active[left++] = active[i];
      count = left;
    }
    for (size_t i = 0; i < group.size(); ++i)
      if (entered >> i & 1) group[i].places->leave(group[i].dpu_index);
  }

  /// The watch calls this function after each period. The function interrupts a tasklet that has
  /// computed for half of the period without a call. If no PE of the thread has started or ended
  /// for the batch's patience, the function ends the run of a PE. Returns whether it interrupted a
  /// tasklet.
  bool look(std::chrono::nanoseconds period) {
    if (batch == nullptr) return false;
    const std::chrono::nanoseconds now = cpu_time();
    const uint64_t turn = signals_.target.turns.load(std::memory_order_relaxed);
    const uint64_t progress = progress_;
    if (turn != std::exchange(watched_turn_, turn)) turn_begin_ = now;
    if (progress != std::exchange(watched_progress_, progress)) progress_begin_ = now;
    if (now - progress_begin_ >= batch->work.patience) endless_progress_ = progress;
    const bool computes = now - turn_begin_ >= period / 2;
    if (computes) interrupt_turn(thread_, signals_.target, turn);
    return computes;
  }

  Batch *batch = nullptr;  // batch of the group that runs; the scheduler's mutex guards `batch` and
                           // calls of look()

 private:
  void run_alone(const PeTask &task, Batch &of) {
    const bool is_accessible = !of.work.is_strict || task.places->enter(task.dpu_index);
    if (of.work.is_checked && is_accessible && explores(task, of))
      run_in_many_orders(task, of);
    else
      run_once(task, of, begin_check(task, of, 0), nullptr, is_accessible);
    if (of.work.is_strict && is_accessible) task.places->leave(task.dpu_index);
  }

  /// Returns whether the settings choose the PE for runs in other orders.
  static bool explores(const PeTask &task, const Batch &of) {
    const CheckSettings &settings = check_settings();
    if (!task.pe->program->is_checked() || (!settings.is_exhaustive && settings.schedules == 0))
      return false;
    if (settings.pe.empty()) return &task == &of.work.groups[0][0];
    return settings.pe == "all" || settings.pe == short_name(task.rank, task.dpu_index);
  }

  void run_once(const PeTask &task, Batch &of, PeCheck *check, PeSnapshot *snapshot,
                bool is_accessible) {
    if (AnyRun *const run = begin_run(task, of, 0, check, snapshot, is_accessible))
      while (advance(*run, of)) continue;
  }

  /// Begins a run, or returns nullptr if the host has no memory. slot: of the runs of this object.
  AnyRun *begin_run(const PeTask &task, const Batch &of, size_t slot, PeCheck *check,
                    PeSnapshot *snapshot, bool is_accessible) {
    const PePlace place = task.places->of(task.dpu_index);
    PeObserver *const observer = of.work.is_checked ? nullptr : observer_of(task, of, slot);
    if (task.pe->program->code() != nullptr)
      return code_runs_[slot].begin(*task.pe, place, task.port, of.work.is_strict, is_accessible,
                                    observer)
                 ? &code_runs_[slot]
                 : nullptr;
    return runs_[slot].begin(*task.pe, place, task.port, of.work.is_strict, is_accessible, check,
                             snapshot, observer)
               ? &runs_[slot]
               : nullptr;
  }

  /// Returns the profile or the trace of a run without checks, or nullptr if it has none.
  PeObserver *observer_of(const PeTask &task, const Batch &of, size_t slot) {
    if (profile_is_on() && task.pe->program->code() == nullptr) {
      if (profiles_[slot] == nullptr) profiles_[slot] = std::make_unique<PeProfile>();
      return profiles_[slot].get();
    }
    const uint32_t number = pe_number(task.rank, task.dpu_index);
    if (of.work.trace == nullptr || !of.work.trace->shows(number)) return nullptr;
    if (traces_[slot] == nullptr) traces_[slot] = std::make_unique<PeTrace>();
    traces_[slot]->set(of.work.trace, number);
    return traces_[slot].get();
  }

  /// Runs the PE, then repeats the run in other orders of its tasklets, and compares the results.
  /// The PE keeps the result of the first run.
  void run_in_many_orders(const PeTask &task, Batch &of) {
    const CheckSettings &settings = check_settings();
    std::unique_lock host(checked_memory(*task.pe).host_mutex);
    PeSnapshot snapshot(*task.pe, task.places->of(task.dpu_index), task.port);
    host.unlock();
    PeCheck *check = begin_check(task, of, 0);
    check->explore(nullptr);
    run_once(task, of, check, &snapshot, true);
    if (check->has_host_write()) {
      check->stop_exploring();
      return note_schedules(pe_name(task.rank, task.dpu_index), 0, 0,
                            "the host writes WRAM during the launch");
    }
    host.lock();
    snapshot.save_result();
    const uint64_t result = snapshot.result();
    check->freeze_states();
    // The same run again, with the values of the cells that the first one has found.
    snapshot.restore();
    begin_check(task, of, 0);
    run_once(task, of, check, &snapshot, true);
    const std::vector<PeCheck::Observation> first = check->take_observations();
    check->has_found_cells();
    Explorer explorer(settings.seed);
    check->explore(&explorer);
    bool differs = false;
    while (!differs && of.stop_reason() == nullptr &&
           (settings.is_exhaustive || explorer.tried() < settings.schedules)) {
      if (!explorer.begin()) break;
      snapshot.restore();
      begin_check(task, of, 0);
      ++progress_;
      run_once(task, of, check, &snapshot, true);
      explorer.end();
      const auto observed = check->take_observations();
      if (check->has_found_cells()) {
        explorer.restart();
        continue;
      }
      const FaultKind fault = task.pe->fault.kind;
      if (fault == FaultKind::kEndless || fault == FaultKind::kStopped) break;  // no result
      if (snapshot.result() != result) {
        differs = true;
        check->report_difference(first, observed,
                                 (task.pe->fault.kind != FaultKind::kNone
                                      ? "The PE is in fault: " + task.pe->fault.reason
                                      : "The result differs from the first run") +
                                     ". To repeat it: --schedules " +
                                     std::to_string(explorer.tried()) + " --seed " +
                                     std::to_string(settings.seed));
      }
    }
    note_schedules(pe_name(task.rank, task.dpu_index), explorer.tried(), explorer.remaining(),
                   differs ? "stopped at the first other result" : nullptr);
    check->stop_exploring();
    snapshot.restore_result();
  }

  /// Begins the checks of a run if the batch is checked, else returns nullptr. slot: of runs_.
  PeCheck *begin_check(const PeTask &task, const Batch &of, size_t slot) {
    if (!of.work.is_checked || task.pe->program->code() != nullptr) return nullptr;
    if (checks_[slot] == nullptr) checks_[slot] = std::make_unique<PeCheck>();
    checks_[slot]->begin(*task.pe, task.places->of(task.dpu_index),
                         Machine::instance().chip().wram_bytes, task.rank, task.dpu_index);
    return checks_[slot].get();
  }

  /// Runs the PE until its DMA has moved some lines, or until it waits for the host. Returns
  /// whether the PE continues.
  bool advance(AnyRun &run, Batch &of) {
    signals_.target.run.store(&run, std::memory_order_relaxed);
    if (run.check() != nullptr) PeCheck::set_current(run.check());
    if (const uint64_t base = run.gs_base(); base != gs_base_) set_gs_base(gs_base_ = base);
    AnyRun::Step step;
    do {
      try {
        if (const char *const reason = of.stop_reason()) run.stop(reason);
        if (endless_progress_.load(std::memory_order_relaxed) ==
            progress_.load(std::memory_order_relaxed)) {
          of.is_endless = true;
          run.end_as_endless();
        }
        step = run.step(signals_.target.door, signals_.target.turns);
      } catch (const std::bad_alloc &) {
        step = run.fail_without_memory();
      }
    } while (step == AnyRun::Step::kOther);
    if (step == AnyRun::Step::kAwaitsHost) std::this_thread::yield();
    if (step == AnyRun::Step::kEnded || step == AnyRun::Step::kAwaitsHost) ++progress_;
    // The program's first direct access changed gs, perhaps just before the end of the run.
    gs_base_ = step == AnyRun::Step::kEnded ? kUnknownGs : run.gs_base();
    return step != AnyRun::Step::kEnded;
  }

  /// Returns the CPU time of the thread. Requires batch != nullptr, so that the thread exists.
  std::chrono::nanoseconds cpu_time() const {
    clockid_t clock;
    timespec time = {};
    if (pthread_getcpuclockid(thread_, &clock) == 0) clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  static constexpr uint64_t kUnknownGs = UINT64_MAX;

  PeSignals signals_;
  PeRun runs_[kChips];
  CodeRun code_runs_[kChips];
  std::unique_ptr<PeCheck> checks_[kChips];  // of these runs, from the first checked run on
  std::unique_ptr<PeProfile> profiles_[kChips];
  std::unique_ptr<PeTrace> traces_[kChips];
  uint64_t gs_base_ = kUnknownGs;  // gs of the thread
  pthread_t thread_ = {};
  std::atomic<uint64_t> progress_{1};  // incremented when PEs start, and when a PE ends
  std::atomic<uint64_t> endless_progress_{
      0};  // the value of progress_ at which the watch lost patience
  uint64_t watched_turn_ = 0, watched_progress_ = 0;
  std::chrono::nanoseconds turn_begin_{0},
      progress_begin_{0};  // CPU time when these values were new
};

class Scheduler : public WorkerPool::Job {
 public:
  void start(PeBatch work, uint32_t threads) {
    install_signal_handlers();
    auto batch = std::make_shared<Batch>();
    batch->work = std::move(work);
    std::lock_guard<std::mutex> lock(mutex_);
    if (batch->work.awaits_host)
      threads = std::max<uint32_t>(
          threads, static_cast<uint32_t>(serving_ + groups_left_ + batch->work.groups.size()));
    prepare(std::clamp(threads, 1u, kMostThreads));
    batches_.push_back(std::move(batch));
    groups_left_ += batches_.back()->work.groups.size();
    if (serving_ >= allowed_) return;
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(groups_left_, allowed_ - serving_));
    if (of_this_process<WorkerPool>().invite(*this, wanted, std::max(threads, 1u))) return;
    groups_left_ -= batches_.back()->work.groups.size();
    batches_.pop_back();
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }

  /// Runs PEs on a thread of the pool until no group is left.
  void run() override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (batches_.empty() || serving_ >= allowed_) return;
    if (++serving_ == 1) begun_.notify_one();
    Runner &runner = *free_.back();
    free_.pop_back();
    runner.attach();
    while (!batches_.empty() && serving_ <= allowed_) run_next_group(runner, lock);
    runner.detach();
    free_.push_back(&runner);
    --serving_;
  }

 private:
  /// Creates the watch and up to `threads` Runners; fewer than `threads` Runners suffice for all
  /// PEs. Throws if it cannot create any Runner.
  void prepare(uint32_t threads) {
    if (!has_watch_) {
      std::thread([this] { watch(); }).detach();
      has_watch_ = true;
    }
    try {
      runners_.reserve(threads);
      free_.reserve(threads);
      while (runners_.size() < threads) {
        runners_.push_back(std::make_unique<Runner>());
        free_.push_back(runners_.back().get());
      }
    } catch (const std::exception &) {
      if (runners_.empty()) throw;
    }
    allowed_ = std::min(threads, static_cast<uint32_t>(runners_.size()));
  }

  /// Releases the lock while PEs run.
  void run_next_group(Runner &runner, std::unique_lock<std::mutex> &lock) {
    const std::shared_ptr<Batch> batch = batches_.front();
    const PeGroup &group = batch->work.groups[batch->next++];
    if (batch->next == batch->work.groups.size()) batches_.pop_front();
    --groups_left_;
    ++batch->running;
    runner.batch = batch.get();
    lock.unlock();
    runner.run(group, *batch);
    lock.lock();
    runner.batch = nullptr;
    --batch->running;
    if (batch->running != 0 || batch->next != batch->work.groups.size()) return;
    lock.unlock();
    batch->work.on_end();
    lock.lock();
  }

  void watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (uint32_t short_periods = 0;;) {
      begun_.wait(lock, [this] { return serving_ != 0; });
      lock.unlock();
      const auto period = short_periods != 0 ? kShortPeriod : kPeriod;
      std::this_thread::sleep_for(period);
      lock.lock();
      bool has_interrupted = false;
      for (const auto &runner : runners_) has_interrupted |= runner->look(period);
      short_periods = has_interrupted ? kShortPeriods : short_periods - std::min(short_periods, 1u);
    }
  }

  std::mutex
      mutex_;  // guards all members below; a thread locks it before it locks the pool's mutex
  std::condition_variable begun_;               // wakes the watch
  std::deque<std::shared_ptr<Batch>> batches_;  // batches that have groups to start
  size_t groups_left_ = 0;  // number of groups, in all batches, that have not started
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Runner *> free_;  // runners without a thread
  uint32_t allowed_ = 0,
           serving_ = 0;  // number of threads that may run PEs, and number of threads that run PEs
  bool has_watch_ = false;
};

}  // namespace

void start_pes(PeBatch batch, uint32_t threads) {
  if (batch.groups.empty()) return batch.on_end();  // a rank without enabled DPUs
  of_this_process<Scheduler>().start(std::move(batch), threads);
}

}  // namespace dpuemu
