// The object behind a pidcomm_stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "exec/device.h"
#include "exec/executor.h"
#include "exec/placement.h"
#include "exec/rank_locks.h"
#include "pidcomm/stream.h"
#include "stream/cuts.h"
#include "stream/group_executors.h"
#include "stream/prices.h"
#include "stream/steps.h"

namespace pidcomm {

class Stream {
 public:
  /// Errors: those of pidcomm_stream_create.
  Stream(struct dpu_set_t set, uint32_t rank_groups);

  /// Record a step; see stream.h for arguments and errors. A call that throws records nothing.
  /// part_variable: may be null.
  void launch(const std::vector<pidcomm_access> &accesses, uint32_t parts,
              const char *part_variable);
  void run(Executor &executor, const pidcomm_request &request, const pidcomm_options &options,
           uint32_t parts);
  void write(const char *name, const void *data, std::size_t bytes);
  void call(int (*function)(void *), void *context,
            const std::vector<pidcomm_stream_host_access> &ranges);

  pidcomm_stream_trace execute();
  /// For any thread, and for signal handlers.
  void cancel() { is_cancelled_ = true; }
  pidcomm_stream_trace plan();
  const std::vector<pidcomm_stream_piece> &timeline() const { return timeline_; }
  /// For tests: calls `function` before each run of pieces. It may change their schedule.
  void before_runs(std::function<void(CutStream &)> function) { before_run_ = std::move(function); }

 private:
  void record(StreamStep step);
  void require_program() const;
  void record_on_program(StreamStep step);
  void update_heap_base();
  StreamCutter &cutter();
  void find_executors(StreamGraph &graph);
  pidcomm_stream_trace fill_timeline(const CutStream &stream, double setup_s);

  struct dpu_set_t set_;
  uint32_t rank_groups_;      // 0: planned
  bool has_all_pes_ = false;  // of its ranks
  Placement placement_;       // of all PEs of the set
  RankLocks calls_;           // of its ranks
  StreamSteps steps_;
  uint64_t pieces_ = 0;                           // at most, of these steps
  std::vector<struct dpu_program_t *> programs_;  // of launches and writes, by PE; empty: none
  bool may_load_ = false;                         // a collective may load a program
  KeptHeapBase heap_base_;
  GroupExecutors executors_;
  StreamPrices prices_;
  std::optional<StreamCutter> cutter_;  // of all steps; nothing: steps have been recorded since
  std::vector<pidcomm_stream_piece> timeline_;
  std::atomic<bool> is_cancelled_ = false;
  static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it
  std::function<void(CutStream &)> before_run_{};
};

}  // namespace pidcomm
