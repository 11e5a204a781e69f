// The object behind a pidcomm_stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/placement.h"
#include "pidcomm/stream.h"
#include "stream/graph.h"

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
  struct Collective;
  struct dpu_set_t group_set(uint32_t group) const;
  uint32_t group_ranks() const { return set_.list.nr_ranks / rank_groups_; }
  Executor &group_executor(const Executor &whole, uint32_t group);
  StreamPiece piece_of(std::size_t part, uint32_t group) const;
  void record(std::vector<StreamPiece> pieces);
  std::vector<StreamPiece> pieces_of(Executor &executor, const Collective &collective,
                                     std::size_t part);
  std::vector<StreamPiece> combined_pieces_of(Executor &executor, const Collective &collective,
                                              std::size_t part);
  StreamPiece pass_of(Executor &executor, const pidcomm_request &request,
                      const Collective &collective, StreamPiece piece) const;

  struct dpu_set_t set_;
  uint32_t rank_groups_;
  Placement placement_;  // of all PEs of the set
  std::size_t steps_ = 0;
  StreamGraph graph_;
  std::map<std::vector<uint32_t>, std::unique_ptr<Executor>> executors_;  // by group, order, shape
  std::vector<pidcomm_stream_piece> timeline_;
};

}  // namespace pidcomm
