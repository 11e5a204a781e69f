// The executors of groups of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "exec/executor.h"

namespace pidcomm {

/// Makes each executor once and keeps it.
class GroupExecutors {
 public:
  /// set: of ranks.
  explicit GroupExecutors(struct dpu_set_t set) : set_(set) {}

  /// Returns the executor of one of `groups` groups of ranks, on the hypercube of `whole` with a
  /// last axis of 1 / groups of its length; `whole` itself if groups is 1. Errors: those of
  /// Executor.
  Executor &of(Executor &whole, uint32_t group, uint32_t groups);

 private:
  struct dpu_set_t set_;
  std::map<std::vector<uint32_t>, std::unique_ptr<Executor>> executors_;  // by group, order, shape
};

/// The hypercube of one of `groups` groups of ranks; see GroupExecutors.
Hypercube group_cube(const Hypercube &whole, uint32_t groups);

}  // namespace pidcomm
