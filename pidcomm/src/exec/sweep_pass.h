// Runs one sweep of a plan on acquired ranks: cuts its words into chunks, computes addresses, and
// calls the line kernels on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// One sweep of a plan, with the buffers and pointers of its threads. If there is one thread and
/// `chunks` covers the sweep, a later run with the same addresses uses the pointers again.
class SweepRun {
 public:
  /// Allocates all memory. The plan and kernels of `pass`, and `prepared`, must outlive the object.
  /// chunks: the number of chunks whose pointers a thread keeps, at least 2. Throws std::bad_alloc.
  SweepRun(const HostPass &pass, const PreparedSweep &prepared, uint64_t chunks = 2);
  ~SweepRun();
  SweepRun(const SweepRun &) = delete;
  SweepRun &operator=(const SweepRun &) = delete;

  /// Carries out the sweep. pass: as in the constructor; eg_base and host may have changed. Returns
  /// the number of bytes of host memory that all threads together use for buffers.
  uint64_t run(const HostPass &pass);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Carries out one sweep of the plan once, like SweepRun::run.
inline uint64_t run_sweep(const HostPass &pass, const PreparedSweep &prepared) {
  return SweepRun(pass, prepared).run(pass);
}

}  // namespace pidcomm
