// Carries out requests on one DPU set.
#pragma once

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "base/recorder.h"
#include "exec/acquired_ranks.h"
#include "exec/clock.h"
#include "exec/device.h"
#include "exec/host_buffer.h"
#include "exec/opened_ranks.h"
#include "exec/placement.h"
#include "exec/plan_cache.h"
#include "exec/rank_locks.h"
#include "exec/worker.h"
#include "pidcomm/audit.h"
#include "plan/planner.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Runs the collectives of one hypercube on a DPU set. Calls of all executors that share a rank are
/// serialised.
class Executor {
 public:
  /// first: see Placement::of. planner: must outlive the executor.
  Executor(struct dpu_set_t set, uint32_t first, const Hypercube &cube, const Planner &planner);
  ~Executor();

  const Hypercube &cube() const { return cube_; }
  const Placement &placement() const { return placement_; }
  const Planner &planner() const { return plans_.planner(); }
  /// Keeps the plans of at least `plans` different requests between calls.
  void keep_plans(std::size_t plans);

  /// Carries out a request and fills `trace`. Errors: see pidcomm.h. All errors except ERR_DEVICE
  /// are thrown before any byte of MRAM or of a host buffer changes.
  void run(const pidcomm_request &request, const pidcomm_options *options, pidcomm_trace &trace);

  /// Carries out several requests; see pidcomm_batch.
  void run_batch(const std::vector<pidcomm_request> &requests,
                 const std::vector<pidcomm_options> &options, pidcomm_trace &trace);

  /// Throws the errors that run would throw before any byte of MRAM or of a host buffer changes.
  /// Does not wait for earlier work, so it reports only faults of work that has ended, and no
  /// faults while calls run on the ranks. If the request has no host buffer (null, 0 bytes), the
  /// host buffer is not checked.
  void validate(const pidcomm_request &request, const pidcomm_options *options);

  /// Returns the MRAM byte address of offset 0 in requests. Waits for earlier work on the set.
  /// Errors: ERR_SET, ERR_DEVICE.
  uint64_t heap_base();
  /// The same without waiting, if the SDK reports program changes (rank_access.h).
  uint64_t heap_base_now();
  /// Returns an MRAM variable of the loaded program. Waits for earlier work on the set. Errors:
  /// ERR_ARGUMENT, ERR_SET, ERR_DEVICE as of pidcomm_symbol_window.
  struct dpu_symbol_t mram_variable(const char *name);

  /// Writes the place of each PE to variables of the loaded program. Waits for earlier work on the
  /// set. axis_names: one per axis. Errors: those of pidcomm_fill_variables.
  void fill_variables(const std::vector<std::string> &axis_names);

  /// Waits until all earlier calls on the ranks have ended.
  void wait_for_calls();

  /// Returns the counts of the audit instruction set from the last call that has ended.
  pidcomm_audit audit();

  /// Works like run, but another thread moves the bytes. If rank queues block later work
  /// (rank_access.h), this thread runs a job in the queues of the ranks, and later work on the set
  /// queues behind this job; start then waits only for blocking calls of other threads. Otherwise
  /// the thread is a worker of the executor: later calls of all executors on these ranks wait, but
  /// operations of the SDK do not. If the host lacks memory or threads, the call ends before start
  /// returns. The executor must exist until the future is ready. start throws the errors of checks
  /// and planning, the future all others.
  std::future<pidcomm_trace> start(const pidcomm_request &request, const pidcomm_options *options);

  /// See pidcomm_stream_limit. Returns the seconds of the pass.
  double stream_limit(int copy_order, uint64_t bytes_read, uint64_t bytes_written, uint64_t src,
                      uint64_t dst, const pidcomm_options *options);

 private:
  struct Call;
  struct Underway;
  static OpenedRanks opened(struct dpu_set_t set, const Placement &placement, RankLocks &calls);
  void run_recorded(Call &call, Recording &recording, const pidcomm_request &request,
                    const pidcomm_options *options, pidcomm_trace &trace);
  void run_batch_recorded(Recording &recording, const Stopwatch &total,
                          const std::vector<pidcomm_request> &requests,
                          const std::vector<pidcomm_options> &options, pidcomm_trace &trace);
  void plan_call(Call &call, const pidcomm_request &request, const pidcomm_options *options,
                 pidcomm_trace &trace, bool reads_programs, bool is_timed);
  void prepare(Call &call, const pidcomm_request &request, pidcomm_trace &trace);
  void finish(Call &call, pidcomm_trace &trace);
  bool queue(Underway &underway);
  bool knows_heap_base();
  void require_heap_base(const Call &call);
  void run_with_reordering(Call &call, pidcomm_trace &trace);
  void run_pass(Call &call, pidcomm_trace &trace);
  void run_on_ranks(const AcquiredRanks &ranks, Call &call, pidcomm_trace &trace);

  struct dpu_set_t set_;
  Hypercube cube_;
  Placement placement_;
  RankLocks calls_;  // serialises the calls with those of all hypercubes on these ranks
  OpenedRanks opened_;
  Recorder recorder_;

  // Of the call that moves bytes.
  pidcomm_audit audit_{};
  MappedEgs mapped_;        // kept between calls because addresses seldom change
  HostBuffer host_buffer_;  // for techniques that copy through host memory; kept between calls

  std::mutex planning_;  // guards the members below, which calls use while others move bytes
  KeptHeapBase heap_base_;
  PlanCache plans_;

  std::mutex queueing_;  // guards the worker; locked before planning_
  Worker worker_;
};

}  // namespace pidcomm
