#include "exec/opened_ranks.h"

#include <string>

#include "door/rank_window.h"
#include "error.h"
#include "exec/device.h"

namespace pidcomm {

OpenedRanks::OpenedRanks(const std::vector<struct dpu_rank_t *> &ranks) {
  opened_.reserve(ranks.size());  // an opened rank is always recorded
  try {
    for (struct dpu_rank_t *rank : ranks) {
      std::string why;
      const dpu_error_t status = rank_window_open(rank, &why);
      const std::string doing = "finding the memory of rank " + std::to_string(opened_.size()) + " of the set";
      if (status != DPU_OK && !why.empty()) fail(PIDCOMM_ERR_DEVICE, doing, ": ", why);
      check_device(status, doing);
      opened_.push_back(rank);
    }
  } catch (...) {
    close();
    throw;
  }
}

OpenedRanks::~OpenedRanks() { close(); }

void OpenedRanks::close() {
  for (struct dpu_rank_t *rank : opened_) rank_window_close(rank);
}

}  // namespace pidcomm
