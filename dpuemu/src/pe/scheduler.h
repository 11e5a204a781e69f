// Runs batches of PEs on the threads of the worker pool, in the order in which the batches start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "machine/pe.h"
#include "machine/pe_memory.h"
#include "machine/program.h"
#include "pe/mram_port.h"
#include "trace/trace.h"

namespace dpuemu {

/// One PE to run.
struct PeTask {
  Pe *pe;
  RankPlaces *places;
  uint32_t rank, dpu_index;
  MramPort port;
};

/// The PEs of one bank share lines of the region. So one thread runs all PEs of a bank in rotation,
/// and changes the PE after some DMA. The caches of this thread then hold the lines that the
/// previous PE accessed. In strict mode, the PEs run one after another, and the WRAM of a PE is
/// accessible only while the PE runs.
using PeGroup = std::vector<PeTask>;

struct PeBatch {
  std::vector<PeGroup> groups;
  bool is_strict, is_checked;  // is_checked: the PEs of a group run one after another
  bool awaits_host;  // whether PEs wait for the host, so that all groups must run at the same time
  std::chrono::seconds
      patience;  // if no PE of a thread ends for this time, all PEs that have not ended get a fault
  std::shared_ptr<const std::atomic<bool>>
      is_stopped;                       // if true, every PE that has not ended gets a fault
  std::shared_ptr<TracedLaunch> trace;  // nullptr without a trace
  std::function<void()> on_end;         // one of the threads calls on_end when all PEs have ended
};

/// Starts the batch on up to `threads` threads (at most 32, which all batches share), and returns
/// without waiting for the PEs. If the host lacks memory or threads, throws std::bad_alloc or
/// std::system_error; then no PE runs and on_end is not called. If parallel loops use all threads
/// of the pool, the PEs start when one of these loops ends.
void start_pes(PeBatch batch, uint32_t threads);

}  // namespace dpuemu
