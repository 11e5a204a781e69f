// One rank of the machine: the rank's memory, the owner of this memory (host or PEs), and the
// rank's queued asynchronous work.
#pragma once

#include <dpu.h>

#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/address_map.h"
#include "base/region.h"
#include "machine/pe.h"
#include "machine/pe_memory.h"

namespace dpuemu {

/// Index of a DPU within its rank in the order of DPU_FOREACH.
constexpr uint32_t dpu_index(uint32_t chip, uint32_t bank) { return chip * kBanks + bank; }

/// Calls act(dpu_index) for each DPU of a bit set.
template <class Act>
void for_each_dpu(uint64_t dpus, Act act) {
  for (; dpus != 0; dpus &= dpus - 1) act(static_cast<uint32_t>(std::countr_zero(dpus)));
}

/// The host buffers of a rank's next transfer, by dpu_index. If a buffer is nullptr, the transfer
/// skips the DPU.
struct PreparedBuffers {
  uint8_t *of_dpu[kDpusPerRank] = {};
};

/// Set to true to stop a launch before its PEs end.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

class Rank;

/// Work for which several ranks wait for each other.
class RankHold {
 public:
  virtual ~RankHold() = default;
  /// The rank has ended its earlier jobs. If the function returns a result, dpu_sync reports this
  /// result and the rank continues. If it returns nullopt, the rank starts no job until
  /// Rank::release. A function that returns a result must not call Rank::release for this rank.
  /// Must not throw, and must not wait unless the host lacks memory or threads.
  virtual std::optional<dpu_error_t> arrive(Rank *rank) = 0;
};

class Rank {
 public:
  using Job = std::function<dpu_error_t()>;

  void set_id(uint32_t id) { id_ = id; }
  uint32_t id() const { return id_; }
  Region &region() { return region_; }
  const Region &region() const { return region_; }

  // --- Ownership. The host owns the MRAM of a new rank.

  /// Makes the host the owner of the MRAM until the matching close_transfer or close_access. A
  /// transfer waits for queued jobs and the PEs that these jobs run; a rank access
  /// (dpuemu_rank_acquire) waits for all running PEs; inside a callback of this rank, neither of
  /// the two waits. Errors: DPU_ERR_MRAM_BUSY if PEs run and the call does not wait for them; for a
  /// rank access also DPU_ERR_DPU_FAULT if a PE is in fault.
  dpu_error_t open_transfer();
  dpu_error_t open_access();
  void close_transfer();
  /// Errors: DPU_ERR_INTERNAL if no rank access is open.
  dpu_error_t close_access();

  /// After the queued jobs, the PEs in `members` (by dpu_index) become the owner of the rank's MRAM
  /// and run; begin_run clears the faults of these PEs. caller_waits: whether the caller waits for
  /// the end of the run; if the caller is a queued job, the run is then a part of this job. Errors:
  /// DPU_ERR_MRAM_BUSY while a transfer or rank access is open, DPU_ERR_DPU_ALREADY_RUNNING.
  dpu_error_t begin_run(uint64_t members, StopFlag stop = nullptr, bool caller_waits = false);
  /// Sets the StopFlag of the current run.
  void stop_run();
  /// Makes the MRAM inaccessible until the host becomes its owner (strict mode). Requires running
  /// PEs.
  void protect_run();
  /// Errors: DPU_ERR_INTERNAL if no PE runs.
  dpu_error_t end_run(uint64_t faulted);
  /// Undoes begin_run before a PE has run.
  void cancel_run();

  /// Clears the faults of the PEs in `members` (by dpu_index).
  void forget_faults(uint64_t members);

  bool is_idle();
  /// Returns whether a DPU of the bit set (by dpu_index) is in fault.
  bool is_faulted(uint64_t members = ~UINT64_C(0));
  bool has_open_access();

  /// Waits for queued jobs, running PEs and detached callbacks.
  void wait_until_idle();
  /// Waits for queued jobs, and for running PEs unless `beside_running_pes`. Inside a callback of
  /// this rank, the function does not wait.
  void wait_for_jobs(bool beside_running_pes);
  /// Returns and clears the first error of an asynchronous job.
  dpu_error_t take_async_error();

  // --- Asynchronous work, in order of arrival. Jobs start when no PE runs.

  /// Queues a job. If the host lacks memory or threads, throws std::bad_alloc or std::system_error
  /// and does not queue the job.
  void enqueue(Job job, bool beside_running_pes = false);
  /// After the earlier jobs, the rank starts no job until release(). If the rank has nothing to
  /// wait for, this begins at once, and the function returns true. Otherwise the function queues a
  /// call of hold->arrive(this), and returns false. Throws std::bad_alloc.
  bool enqueue_hold(const std::shared_ptr<RankHold> &hold, bool beside_running_pes);
  /// Lets the rank start jobs again after a hold. status: the result that dpu_sync reports for the
  /// hold.
  void release(dpu_error_t status);
  /// Mark the begin and the end of work for which only wait_until_idle() waits.
  void begin_detached();
  void end_detached(dpu_error_t status);

  /// Resets the rank to the state of a rank that is not allocated.
  void reset();

  // --- The following members are guarded by the machine's mutex.
  dpu_rank_t *handle = nullptr;  // handle of the current allocation; nullptr if the rank is free
  uint32_t pins = 0;             // number of calls in progress; dpu_free waits for them
  PreparedBuffers prepared, prepared_in_callback;

  /// The largest number of blocks per DPU in a scatter-gather transfer, by the profile of the
  /// allocation; 0: none are allowed.
  std::atomic<uint32_t> sg_max_blocks = 0;

  // --- The PEs' programs. Only a thread with an open transfer may access them or, while PEs run,
  // the threads that run these PEs.
  Pe pes[kDpusPerRank];  // by dpu_index
  RankPlaces places;
  double run_seconds = 0;  // host time of the rank's last run
  /// Makes the PE's WRAM accessible if it is not accessible yet. Returns whether the WRAM is now
  /// accessible.
  bool open_wram(uint32_t dpu_index);
  /// Returns the PE (dpu_index) whose WRAM contains the address, or kDpusPerRank.
  uint32_t wram_owner(uint64_t address);

 private:
  struct QueuedJob {
    Job run;                         // empty for a hold
    std::shared_ptr<RankHold> hold;  // null for a job
    bool beside_running_pes;
  };

  void work(std::unique_lock<std::mutex> lock, bool is_job_thread);
  void work_in_thread_locked();
  bool can_start_locked() const {
    return !is_working_ && !jobs_.empty() && (!is_running_ || jobs_.front().beside_running_pes);
  }
  dpu_error_t open_locked(bool is_access);
  void record_locked(dpu_error_t status);
  bool has_no_jobs_locked() const { return jobs_.empty() && !is_working_; }
  /// Returns whether PEs run and no queued job waits for them. Then calls that need the MRAM fail
  /// instead of waiting for the jobs.
  bool runs_outside_jobs_locked() const { return is_running_ && !is_run_inside_job_; }
  bool is_idle_locked() const { return has_no_jobs_locked() && detached_ == 0 && !is_running_; }

  uint32_t id_ = 0;
  Region region_;

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::deque<QueuedJob> jobs_;
  bool is_working_ = false;  // whether a thread runs the queued jobs, or a hold has begun
  bool is_running_ = false;
  bool is_run_inside_job_ =
      false;  // whether a queued job started the run and waits for it; meaningful while PEs run
  StopFlag stop_;
  uint32_t detached_ = 0;
  uint32_t transfers_ = 0;
  uint32_t accesses_ = 0;
  uint64_t faulted_ = 0, faulted_before_run_ = 0;  // by dpu_index
  dpu_error_t async_error_ = DPU_OK;
};

/// The ranks whose callback the current thread runs. The thread must not wait for these ranks.
class CallbackScope {
 public:
  explicit CallbackScope(std::span<Rank *const> ranks);
  ~CallbackScope();
  CallbackScope(const CallbackScope &) = delete;
  CallbackScope &operator=(const CallbackScope &) = delete;
  static bool contains(const Rank *rank);

 private:
  std::span<Rank *const> ranks_;
  const CallbackScope *outer_;
};

}  // namespace dpuemu
