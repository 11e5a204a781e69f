// A part of a collective of a stream, and how groups of ranks carry it out.
#pragma once

#include <cstdint>

#include "stream/steps.h"

namespace pidcomm {

/// Whether a collective can be cut into parts of its windows.
bool is_cut_by_words(int collective);

struct CollectivePart {
  /// Errors: those of make_plan.
  CollectivePart(const CollectiveStep &step, uint32_t part, uint32_t parts);

  pidcomm_request request;  // its mask is the step's
  Plan plan;                // as `tile`

  bool has_host() const { return plan.in_row_bytes + plan.out_row_bytes != 0; }
  /// Whether a call may load a program.
  bool may_load() const { return may_load_; }
  /// Whether `groups` hypercubes with a shorter last axis can carry it out.
  bool is_cut_by_ranks(uint32_t groups) const;
  /// Whether it is an allreduce of `groups` reduces, whose rows the host combines, and as many
  /// broadcasts. Only of integers: their sums do not depend on the order.
  bool is_combined(uint32_t groups) const;
  /// The request of one of `groups` hypercubes; of the complete one if groups is 1.
  pidcomm_request of_group(uint32_t group, uint32_t groups) const;

 private:
  uint64_t stride() const;
  bool may_load_, has_passes_;
};

}  // namespace pidcomm
