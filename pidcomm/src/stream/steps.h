// The recorded steps of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "exec/executor.h"
#include "rank_access/sdk.h"

namespace pidcomm {

/// Bytes [begin, end) of MRAM, or of host memory by address.
struct ByteRange {
  uint64_t begin = 0, end = 0;
  bool writes = false;
};

/// A variable of the loaded program.
struct PeVariable {
  struct dpu_symbol_t symbol;
  std::string name;
};

/// Launches of the loaded program on all ranks; see pidcomm_stream_launch.
struct LaunchStep {
  struct Access {
    ByteRange range;  // of MRAM, of all parts together
    bool is_cut;
  };
  std::vector<Access> accesses;  // empty: all MRAM
  uint32_t parts;
  std::optional<PeVariable> part_variable{};
};

/// A collective of all PEs of the set; see pidcomm_stream_run.
struct CollectiveStep {
  Executor *executor;
  pidcomm_request request;  // see own_request
  std::string mask;
  pidcomm_options options;
  uint32_t parts;
  uint64_t heap_base;
  std::optional<pidcomm_operator> operation{};
  std::vector<std::byte> identity{}, messages{};

  /// Copies what the request borrows from the program, except host rows and the context of the
  /// operator. Requires a valid request.
  void copy_borrowed();
  /// Returns the request with pointers to the copies, valid while the step exists at its place.
  pidcomm_request own_request() const;
};

/// A write of a variable of all PEs; see pidcomm_stream_write.
struct WriteStep {
  PeVariable variable;
  std::vector<std::byte> data;
};

/// A function of the program; see pidcomm_stream_call.
struct CallStep {
  int (*function)(void *);
  void *context;
  std::vector<ByteRange> host;
};

using StreamStep = std::variant<LaunchStep, CollectiveStep, WriteStep, CallStep>;
/// A deque, because pieces point to their steps.
using StreamSteps = std::deque<StreamStep>;

/// Returns the parts with which a step was recorded.
inline uint32_t parts_of(const StreamStep &step) {
  const auto *const launch = std::get_if<LaunchStep>(&step);
  const auto *const collective = std::get_if<CollectiveStep>(&step);
  return launch != nullptr ? launch->parts : collective != nullptr ? collective->parts : 1;
}

/// An upper limit of the pieces of a step with all its parts. Of an allreduce that the host
/// combines: a reduce and a broadcast of each rank group, and the combination.
inline uint64_t most_pieces(const StreamStep &step, uint32_t rank_groups) {
  if (std::holds_alternative<CallStep>(step)) return 1;
  const uint64_t groups = rank_groups;
  const bool is_combined = std::holds_alternative<CollectiveStep>(step) && groups != 1;
  return parts_of(step) * (is_combined ? 2 * groups + 1 : groups);
}

}  // namespace pidcomm
