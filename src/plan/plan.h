// A plan: the work of a collective as a value. Immutable and printable; its size depends on the number of axes only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/forms.h"
#include "plan/options.h"
#include "plan/request.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// One side of a collective's definition.
struct Extent {
  Space space;
  bool per_member;  // N blocks, else one
};

struct Plan {
  int collective = 0, op = 0;
  ElementType type{};
  Options options{};
  Hypercube cube;
  std::string mask;
  Grouping grouping;
  Extent in{}, out{};
  bool reduces = false, bytewise = false;
  uint64_t bytes = 0, block_bytes = 0;
  uint64_t heap_base = 0;                        // MRAM byte of the request's offset 0
  uint64_t src = 0, dst = 0;                     // absolute MRAM bytes
  uint64_t in_pe_bytes = 0, out_pe_bytes = 0;    // in MRAM, per PE; 0 on the host side
  uint64_t in_row_bytes = 0, out_row_bytes = 0;  // host rows, per group; 0 on the MRAM side
  Form form;
};

/// One collective: its row of PIDCOMM_COLLECTIVES, and its affine form.
struct CollectiveRule {
  int code;
  bool reduces;
  Extent in, out;
  int steps;  // PIDCOMM_STEP bits that apply
  void (*sweep)(const Plan &plan, const LaneSplit &split, Sweep &sweep);

  /// `bytes` is N blocks, else one block.
  bool bytes_are_blocks() const { return (in.space == Space::mram && in.per_member) || (out.space == Space::mram && out.per_member); }
};

/// The affine form of each collective: pass, loops and streams, given where both sides are and whether the sweep rotates. One file of
/// src/plan/collectives each.
#define PIDCOMM_ROW(ENUM, code, name, ...) void sweep_##name(const Plan &plan, const LaneSplit &split, Sweep &sweep);
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Errors: ERR_ARGUMENT if the code is unknown.
const CollectiveRule &rule_of(int collective);

/// heap_base: MRAM byte of the request's offset 0.
/// Errors: those that pidcomm.h lists for a collective, except errors of devices and of the host buffer. Cost: O(axes^2), O(PEs) on the
/// general path, O(rounds) for member steps.
Plan make_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base);

/// Errors: ERR_HOST_BUFFER (the request's host buffer does not fit the plan).
void check_host(const Plan &plan, const pidcomm_request &request);

/// Parts that only some forms have; null for the others.
const PeSteps *pe_steps_of(const Plan &plan);
const MemberSteps *member_steps_of(const Plan &plan);

/// Whether PEs reorder blocks before the host pass or after it.
bool reorders(const Plan &plan);

/// The absolute MRAM byte that the host pass reads from.
uint64_t pass_src_of(const Plan &plan);

/// visit(sweep) for every sweep of the host pass in order.
void each_sweep(const Plan &plan, const std::function<void(const Sweep &)> &visit);

/// The clusters of a shape without a lane split: entangled groups that groups connect. Entry e is the first entangled group of e's cluster.
std::vector<uint32_t> clusters_of(const Hypercube &cube, const Grouping &grouping);

/// The plan as JSON; expand lists the items of the affine form.
std::string to_json(const Plan &plan, bool expand);

}  // namespace pidcomm
