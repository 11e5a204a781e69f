#include "exec/opened_ranks.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "exec/device.h"
#include "exec/placement.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

OpenedRanks::OpenedRanks(struct dpu_set_t set, const Placement &placement) {
  opened_.reserve(placement.ranks.size());
  try {
    for (struct dpu_rank_t *rank : placement.ranks) {
      std::string doing = "finding the memory of rank " + std::to_string(opened_.size()) +
                          " of the set",
                  why;
      const dpu_error_t status = rank_access_open(rank, &why);
      if (status == DPU_OK) {
        opened_.push_back(rank);  // no exception can occur between the open and this line
        continue;
      }
      if (!why.empty()) fail(PIDCOMM_ERR_DEVICE, doing, ": ", why);
      check_pes(status, std::move(doing), set, placement);
    }
  } catch (...) {
    close();
    throw;
  }
}

OpenedRanks::~OpenedRanks() { close(); }

void OpenedRanks::close() {
  for (struct dpu_rank_t *rank : opened_) rank_access_close(rank);
}

}  // namespace pidcomm
