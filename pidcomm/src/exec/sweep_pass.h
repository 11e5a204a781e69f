// Runs one sweep of a plan on acquired ranks: cuts its words into chunks, computes addresses, and
// calls the line kernels on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

class PreparedSweep;

/// The arguments of a pass. eg_base[e] is the line of MRAM word 0 of entangled group e.
struct HostPass {
  const Plan &plan;
  const Kernels &kernels;
  const std::vector<std::byte *> &eg_base;
  std::byte *host;    // host rows of scatter, gather, reduce, broadcast; scatter and broadcast only
                      // read the rows
  std::byte *buffer;  // of the library: for the rows of folds, and for messages
  int threads;
};

/// Carries out one sweep of the plan. Returns the number of bytes of host memory that all threads
/// together use for buffers.
uint64_t run_sweep(const HostPass &pass, const PreparedSweep &prepared);

}  // namespace pidcomm
