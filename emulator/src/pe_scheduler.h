// Runs batches of PEs on the threads of the worker pool, in the order in which the batches start.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mram_port.h"
#include "pe.h"
#include "program.h"

namespace dpuemu {

/// One PE that shall run.
struct PeTask {
  Pe *pe;
  PePlace place;
  MramPort port;
};

/// PEs of one bank: they share the lines of the region, so one thread runs them together, turn by turn from DMA to DMA, and finds the lines
/// that one of them touched in its caches for the next.
using PeGroup = std::vector<PeTask>;

struct PeBatch {
  std::vector<PeGroup> groups;
  bool is_strict;
  uint32_t patience_seconds;                            // a tasklet that makes no call for so long is in fault
  std::shared_ptr<const std::atomic<bool>> is_stopped;  // when it becomes true, all PEs are in fault
  std::function<void()> on_end;                         // on one of the threads, when all PEs have ended
};

/// Starts the batch on up to `threads` threads (all batches together, 32 at most), and returns. Throws std::bad_alloc or std::system_error
/// if there is no memory or thread, and then no PE runs and on_end is not called. While parallel loops have all threads of the pool, the
/// PEs wait for the first loop that ends.
void start_pes(PeBatch batch, uint32_t threads);

}  // namespace dpuemu
