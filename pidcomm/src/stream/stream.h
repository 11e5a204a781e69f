// The object behind a pidcomm_stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/executor.h"
#include "exec/placement.h"
#include "pidcomm/stream.h"
#include "stream/graph.h"
#include "stream/group_executors.h"
#include "stream/lower.h"
#include "stream/schedule.h"

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

  pidcomm_stream_trace execute();
  const std::vector<pidcomm_stream_piece> &timeline() const { return timeline_; }

 private:
  /// The pieces for some cuts.
  struct Lowered {
    Lowered(const StreamSteps &steps, StreamCuts own_cuts, uint32_t ranks)
        : cuts(own_cuts), graph(lower(steps, own_cuts, ranks)), schedule(graph) {}
    StreamCuts cuts;
    StreamGraph graph;
    PieceSchedule schedule;
  };
  void record(StreamStep step);
  Lowered &lowered(StreamCuts cuts);
  void fill_timeline(const Lowered &lowered);

  struct dpu_set_t set_;
  StreamCuts cuts_;
  Placement placement_;  // of all PEs of the set
  StreamSteps steps_;
  GroupExecutors executors_;
  std::unique_ptr<Lowered> lowered_;  // of all steps; null: none
  std::vector<pidcomm_stream_piece> timeline_;
};

}  // namespace pidcomm
