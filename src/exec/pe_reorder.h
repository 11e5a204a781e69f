// PE-assisted reordering: the PE program pe/reorder.c, loaded and run.
#pragma once

#include "exec/placement.h"
#include "pidcomm/pidcomm.h"
#include "plan/forms.h"

namespace pidcomm {

/// Whether the PE has the reorder program, which a collective loads in place of the caller's.
bool has_reorder_program(struct dpu_t *dpu);

/// The reorder program on the DPUs of a set. Its MRAM heap starts where the replaced program's did, so offsets keep their meaning.
class PeReorder {
 public:
  /// Loads the program unless all PEs have it; heap_base: see heap_base_of. Errors: ERR_DEVICE, nothing has moved then.
  PeReorder(struct dpu_set_t set, const Placement &placement, uint64_t heap_base, pidcomm_trace &trace);

  /// Runs a reordering on every PE of the placement and waits. Errors: ERR_DEVICE; the window it writes is undefined then.
  void run(const Reorder &reorder, pidcomm_trace &trace) const;

 private:
  struct dpu_set_t set_;
  const Placement &placement_;
};

}  // namespace pidcomm
