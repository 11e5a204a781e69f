// PE-assisted reordering: loads and runs the PE program pe/reorder.c.
#pragma once

#include "exec/placement.h"
#include "pidcomm/pidcomm.h"
#include "plan/forms.h"

namespace pidcomm {

/// Whether the reorder program is loaded on the PE. A collective whose PEs reorder blocks loads the
/// reorder program in place of the caller's program.
bool has_reorder_program(struct dpu_t *dpu);

/// The reorder program on the DPUs of a set. On every DPU, its MRAM heap starts at the same address
/// as the heap of the replaced program, so a heap offset means the same MRAM byte as before.
class PeReorder {
 public:
  /// Loads the reorder program unless it is already loaded on all DPUs of the set. heap_base: of
  /// the placement. Errors: ERR_DEVICE, before any byte moves.
  PeReorder(struct dpu_set_t set, const Placement &placement, uint64_t heap_base,
            pidcomm_trace &trace);

  /// Runs a reordering on every PE of the placement and waits until all PEs have ended. Errors:
  /// ERR_DEVICE; the output window is then undefined.
  void run(const Reorder &reorder, pidcomm_trace &trace) const;

 private:
  struct dpu_set_t set_;
  const Placement &placement_;
};

}  // namespace pidcomm
