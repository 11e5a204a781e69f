// A plan describes the work of a collective as a value. A plan is immutable and printable. Its size
// in memory depends on the number of axes of the hypercube, and on the number of messages, or, for
// folds, of PEs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/fold.h"
#include "plan/forms.h"
#include "plan/options.h"
#include "plan/pe_messages.h"
#include "plan/request.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The input or the output in a collective's definition.
struct Extent {
  Space space;
  bool per_member;  // the extent has N blocks, else one block
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
  uint64_t heap_base = 0;     // MRAM byte address of offset 0 in the request
  uint64_t src = 0, dst = 0;  // absolute MRAM byte addresses
  uint64_t in_pe_bytes = 0,
           out_pe_bytes =
               0;  // bytes of input and output per PE in MRAM; 0 if the data are in host rows
  uint64_t in_row_bytes = 0,
           out_row_bytes = 0;  // bytes of a host row of input and output; 0 if the data are in MRAM
  bool transposes = false;     // gather: see pidcomm_request.host_transposes
  uint64_t row_stride_bytes = 0;               // from a host row to the next
  std::shared_ptr<const PeMessages> messages;  // of PIDCOMM_SENDRECV, else null
  std::optional<Fold> fold;                    // of scans and operators of the program
  std::optional<pidcomm_operator> finish;      // an operator without `combine`
  Form form;
};

/// The rule of a collective: its row of PIDCOMM_COLLECTIVES, and the function that sets its affine
/// form.
struct CollectiveRule {
  int code;
  bool reduces;
  Extent in, out;
  int steps;  // PIDCOMM_STEP bits of the steps that apply to the collective
  void (*sweep)(const Plan &plan, const Split &split, Sweep &sweep);

  /// Whether argument `bytes` is the size of N blocks; else `bytes` is the size of one block.
  bool bytes_are_blocks() const {
    return (in.space == Space::mram && in.per_member) ||
           (out.space == Space::mram && out.per_member);
  }
};

/// Functions that set the affine form of each collective: pass, loops and streams. The caller has
/// already set the location of input and output, and whether the sweep rotates lines.
/// src/plan/collectives has a file for each function.
#define PIDCOMM_ROW(ENUM, code, name, ...) \
  void sweep_##name(const Plan &plan, const Split &split, Sweep &sweep);
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Returns the rule of a collective. Errors: ERR_ARGUMENT if the code is unknown.
const CollectiveRule &rule_of(int collective);

/// Makes the plan of a request. heap_base: MRAM byte address of offset 0 in the request.
/// Errors: those that pidcomm.h lists for a collective, except errors of devices and of the host
/// buffer. Cost: O(axes^2), and O(rounds) for member steps.
Plan make_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options,
               uint64_t heap_base);

/// Checks the host buffer of a request. Errors: ERR_HOST_BUFFER (the buffer does not fit the plan).
void check_host(const Plan &plan, const pidcomm_request &request);

/// Return a part that only some forms of a plan have, or null if the plan's form does not have this
/// part.
const PeSteps *pe_steps_of(const Plan &plan);
const MemberSteps *member_steps_of(const Plan &plan);

/// Returns the MRAM byte of the PE scratch. Throws ERR_WINDOW unless `scratch_bytes` at the scratch
/// offset of the plan's options fit in MRAM beside the windows of the plan.
uint64_t checked_scratch(const Plan &plan, uint64_t scratch_bytes);

/// Whether PEs reorder blocks before the host pass or after it.
bool reorders(const Plan &plan);

/// Returns the absolute MRAM byte address at which the input of the host pass starts.
uint64_t pass_src_of(const Plan &plan);

/// Calls visit(sweep) for every sweep of the host pass, in the order in which the sweeps run.
void each_sweep(const Plan &plan, const std::function<void(const Sweep &)> &visit);

/// Returns the plan as JSON. If `expand` is true, the JSON also lists the items of the affine form.
std::string to_json(const Plan &plan, bool expand);

}  // namespace pidcomm
