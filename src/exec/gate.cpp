#include "exec/gate.h"

#include <condition_variable>
#include <mutex>
#include <string>

#include "exec/device.h"

namespace pidcomm {

struct Gate::Latch {
  explicit Latch(const std::vector<struct dpu_rank_t *> &of) : ranks(of) {}
  std::vector<struct dpu_rank_t *> ranks;  // the sets of the jobs point to them
  std::mutex mutex;
  std::condition_variable opened;
  bool is_open = false;

  void open() {
    const std::lock_guard<std::mutex> lock(mutex);
    is_open = true;
    opened.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    opened.wait(lock, [this] { return is_open; });
  }
};

Gate::Gate(const std::vector<struct dpu_rank_t *> &ranks) : latch_(std::make_shared<Latch>(ranks)) {
  const auto wait_in_queue = [](struct dpu_set_t, uint32_t, void *own) {
    const std::unique_ptr<std::shared_ptr<Latch>> latch(static_cast<std::shared_ptr<Latch> *>(own));
    (*latch)->wait();
    return DPU_OK;
  };
  try {
    for (struct dpu_rank_t *&rank : latch_->ranks) {
      auto own = std::make_unique<std::shared_ptr<Latch>>(latch_);
      check_device(dpu_callback(dpu_set_from_rank(&rank), wait_in_queue, own.get(), DPU_CALLBACK_ASYNC),
                   "queueing a job on rank " + std::to_string(&rank - latch_->ranks.data()) + " of the set");
      own.release();  // the job's
    }
  } catch (...) {
    latch_->open();
    throw;
  }
}

Gate::~Gate() { latch_->open(); }

}  // namespace pidcomm
