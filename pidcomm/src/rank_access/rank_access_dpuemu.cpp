// Implements rank access for emulated DIMMs.
#include <dpuemu.h>

#include "base/error.h"
#include "pidcomm/sdk_error.hpp"
#include "rank_access/rank_access.h"

namespace pidcomm {

dpu_error_t rank_access_acquire(struct dpu_rank_t *rank, std::byte **base) {
  dpuemu_rank_access_t emulated;
  const dpu_error_t status = dpuemu_rank_acquire(rank, &emulated);
  if (status == DPU_OK) *base = reinterpret_cast<std::byte *>(emulated.base);
  return status;
}

bool ranks_are_coherent() { return true; }
bool rank_queues_block_later_work() { return true; }
std::optional<uint64_t> program_changes() { return dpuemu_program_changes(); }

bool launches_are_modelled() { return true; }

double modelled_launch_seconds(struct dpu_set_t set) {
  dpuemu_report_t report;
  if (const dpu_error_t status = dpuemu_get_report(set, &report); status != DPU_OK)
    fail(PIDCOMM_ERR_DEVICE, "reading the modelled time of a launch: ", sdk_error_text(status));
  return report.cycles_max / report.cycles_per_second;
}

dpu_error_t rank_access_open(struct dpu_rank_t *, std::string *) { return DPU_OK; }
void rank_access_close(struct dpu_rank_t *) {}

void rank_access_release(struct dpu_rank_t *rank) { dpuemu_rank_release(rank); }

}  // namespace pidcomm
