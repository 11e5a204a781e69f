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

/// One PE to run.
struct PeTask {
  Pe *pe;
  PePlace place;
  MramPort port;
};

/// PEs of one bank share the lines of the region. So one thread runs them in turn, each from DMA to DMA, and its caches hold the lines that
/// the previous PE touched.
using PeGroup = std::vector<PeTask>;

struct PeBatch {
  std::vector<PeGroup> groups;
  bool is_strict;
  uint32_t patience_seconds;                            // a tasklet that makes no call for this long is in fault
  std::shared_ptr<const std::atomic<bool>> is_stopped;  // if true, every PE that has not ended gets a fault
  std::function<void()> on_end;                         // called by one of the threads when all PEs have ended
};

/// Starts the batch on up to `threads` threads (shared by all batches, at most 32), and returns. Without memory or a thread, throws
/// std::bad_alloc or std::system_error; then no PE runs and on_end is not called. While parallel loops use all threads of the pool, the PEs
/// wait for the first loop that ends.
void start_pes(PeBatch batch, uint32_t threads);

}  // namespace dpuemu
