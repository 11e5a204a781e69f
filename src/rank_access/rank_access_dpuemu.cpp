// Rank access on emulated DIMMs.
#include <dpuemu.h>

#include "rank_access/rank_access.h"

namespace pidcomm {

dpu_error_t rank_window_acquire(struct dpu_rank_t *rank, RankWindow *window) {
  dpuemu_rank_access_t emulated;
  const dpu_error_t status = dpuemu_rank_acquire(rank, &emulated);
  if (status == DPU_OK) window->base = reinterpret_cast<std::byte *>(emulated.base);
  return status;
}

bool rank_windows_are_coherent() { return true; }
bool rank_queues_hold_back() { return true; }

dpu_error_t rank_window_open(struct dpu_rank_t *, std::string *) { return DPU_OK; }
void rank_window_close(struct dpu_rank_t *) {}

void rank_window_release(struct dpu_rank_t *rank) { dpuemu_rank_release(rank); }

}  // namespace pidcomm
