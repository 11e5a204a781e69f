#include "machine/rank.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "base/job_threads.h"
#include "machine/checked_memory.h"
#include "machine/debugger.h"

namespace dpuemu {
namespace {

// initial-exec: the memory exists from the start of the thread. Otherwise the C library ends the
// process if it cannot allocate the memory.
__attribute__((tls_model("initial-exec"))) thread_local const CallbackScope *innermost_callback =
    nullptr;

}  // namespace

CallbackScope::CallbackScope(std::span<Rank *const> ranks)
    : ranks_(ranks), outer_(innermost_callback) {
  innermost_callback = this;
}
CallbackScope::~CallbackScope() { innermost_callback = outer_; }

bool CallbackScope::contains(const Rank *rank) {
  for (const CallbackScope *scope = innermost_callback; scope != nullptr; scope = scope->outer_)
    if (std::find(scope->ranks_.begin(), scope->ranks_.end(), rank) != scope->ranks_.end())
      return true;
  return false;
}

dpu_error_t Rank::open_locked(bool is_access) {
  if (is_running_) return DPU_ERR_MRAM_BUSY;
  if (is_access && faulted_ != 0) return DPU_ERR_DPU_FAULT;
  return region_.protect(false) ? DPU_OK : DPU_ERR_SYSTEM;
}

dpu_error_t Rank::open_transfer() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!CallbackScope::contains(this))
    changed_.wait(lock, [this] { return runs_outside_jobs_locked() || has_no_jobs_locked(); });
  const dpu_error_t status = open_locked(false);
  if (status == DPU_OK) ++transfers_;
  return status;
}

dpu_error_t Rank::open_access() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!CallbackScope::contains(this))
    changed_.wait(lock, [this] { return !is_running_ && has_no_jobs_locked(); });
  const dpu_error_t status = open_locked(true);
  if (status != DPU_OK) return status;
  ++accesses_;
  for (Pe &pe : pes) {
    pe.was_accessed = true;
    if (pe.checked != nullptr) pe.checked->define_all_mram();
  }
  return status;
}

void Rank::close_transfer() {
  std::lock_guard<std::mutex> lock(mutex_);
  --transfers_;
}

dpu_error_t Rank::close_access() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (accesses_ == 0) return DPU_ERR_INTERNAL;
  --accesses_;
  return DPU_OK;
}

dpu_error_t Rank::begin_run(uint64_t members, StopFlag stop, bool caller_waits) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!CallbackScope::contains(this))
    changed_.wait(lock, [this] { return runs_outside_jobs_locked() || has_no_jobs_locked(); });
  if (is_running_) return DPU_ERR_DPU_ALREADY_RUNNING;
  if (transfers_ + accesses_ != 0) return DPU_ERR_MRAM_BUSY;
  if (!region_.protect(false)) return DPU_ERR_SYSTEM;
  is_running_ = true;
  is_run_inside_job_ = caller_waits && CallbackScope::contains(this);
  stop_ = std::move(stop);
  faulted_before_run_ = faulted_;
  faulted_ &= ~members;
  changed_.notify_all();  // transfers that wait for queued jobs now fail instead
  return DPU_OK;
}

void Rank::stop_run() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_running_ && stop_ != nullptr) stop_->store(true);
}

void Rank::protect_run() {
  std::lock_guard<std::mutex> lock(mutex_);
  region_.protect(true);
}

dpu_error_t Rank::end_run(uint64_t faulted) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!is_running_) return DPU_ERR_INTERNAL;
  is_running_ = false;
  faulted_ |= faulted;
  changed_.notify_all();
  work(std::move(lock), false);
  return DPU_OK;
}

void Rank::cancel_run() {
  std::unique_lock<std::mutex> lock(mutex_);
  is_running_ = false;
  faulted_ = faulted_before_run_;
  changed_.notify_all();
  work(std::move(lock), false);
}

bool Rank::open_wram(uint32_t dpu_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  Pe &pe = pes[dpu_index];
  if (pe.has_wram) return true;
  pe.has_wram = places.reserve() && places.open_wram(dpu_index);
  if (pe.has_wram) show_memory(id_, dpu_index, region_.base(), places.of(dpu_index).wram);
  return pe.has_wram;
}

uint32_t Rank::wram_owner(uint64_t address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return places.owner(address);
}

void Rank::forget_faults(uint64_t members) {
  std::lock_guard<std::mutex> lock(mutex_);
  faulted_ &= ~members;
}

bool Rank::is_idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_idle_locked();
}

bool Rank::is_faulted(uint64_t members) {
  std::lock_guard<std::mutex> lock(mutex_);
  return (faulted_ & members) != 0;
}

bool Rank::has_open_access() {
  std::lock_guard<std::mutex> lock(mutex_);
  return accesses_ != 0;
}

void Rank::wait_until_idle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return is_idle_locked(); });
}

void Rank::wait_for_jobs(bool beside_running_pes) {
  if (CallbackScope::contains(this)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock,
                [=, this] { return has_no_jobs_locked() && (beside_running_pes || !is_running_); });
}

dpu_error_t Rank::take_async_error() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(async_error_, DPU_OK);
}

void Rank::record_locked(dpu_error_t status) {
  if (async_error_ == DPU_OK) async_error_ = status;
}

void Rank::enqueue(Job job, bool beside_running_pes) {
  std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back({std::move(job), nullptr, beside_running_pes});
  if (!can_start_locked()) return;
  try {
    work_in_thread_locked();
    is_working_ = true;
  } catch (...) {
    jobs_.pop_back();
    throw;
  }
}

bool Rank::enqueue_hold(const std::shared_ptr<RankHold> &hold, bool beside_running_pes) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (has_no_jobs_locked() && (!is_running_ || beside_running_pes)) {
    is_working_ = true;
    return true;
  }
  jobs_.push_back({nullptr, hold, beside_running_pes});
  return false;
}

void Rank::release(dpu_error_t status) {
  std::unique_lock<std::mutex> lock(mutex_);
  record_locked(status);
  is_working_ = false;
  work(std::move(lock), false);
}

/// Starts the queued jobs and holds until a hold begins, or the next job waits for running PEs. In
/// a thread for jobs, the function also runs the jobs; otherwise it leaves the first job and all
/// later work to such a thread.
void Rank::work(std::unique_lock<std::mutex> lock, bool is_job_thread) {
  while (can_start_locked()) {
    is_working_ = true;
    if (!is_job_thread && jobs_.front().hold == nullptr) {
      try {
        return work_in_thread_locked();
      } catch (const std::exception &) {
        is_job_thread = true;  // the host lacks memory or threads
      }
    }
    const QueuedJob job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    dpu_error_t status = DPU_OK;
    if (job.hold != nullptr) {
      const std::optional<dpu_error_t> end = job.hold->arrive(this);
      if (!end) return;
      status = *end;
    } else {
      Rank *const self[] = {this};
      CallbackScope scope(self);
      status = guarded(job.run);
    }
    lock.lock();
    record_locked(status);
    is_working_ = false;
  }
  changed_.notify_all();
}

/// Continues work() in a thread for jobs. Requires is_working_.
void Rank::work_in_thread_locked() {
  JobThreads::instance().run([this] {
    std::unique_lock<std::mutex> lock(mutex_);
    is_working_ = false;
    work(std::move(lock), true);
  });
}

void Rank::begin_detached() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++detached_;
}

void Rank::end_detached(dpu_error_t status) {
  std::lock_guard<std::mutex> lock(mutex_);
  --detached_;
  record_locked(status);
  changed_.notify_all();
}

void Rank::reset() {
  std::lock_guard<std::mutex> lock(mutex_);
  faulted_ = 0;
  async_error_ = DPU_OK;
  region_.protect(false);
  region_.drop();
  for (uint32_t i = 0; i < kDpusPerRank; ++i) {
    if (pes[i].text != nullptr) withdraw_code(places.of(i));
    pes[i] = {};
  }
  places.drop();
  run_seconds = 0;
}

}  // namespace dpuemu
