// Coherence policy `hardware`: before the first line of a window is loaded, every line of it leaves the caches.
//
// PEs write MRAM behind the caches, so a line that is in one when the host becomes the owner may be old. One sweep over the whole window
// and one fence per thread cost far less than a fence every few lines: a fence waits for every store under way. Flushing again after use
// would add nothing: whoever loads next has to flush first anyway, and the passes leave no line dirty, as they store whole lines past the
// caches.
#include <algorithm>

#include "base/geometry.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"

namespace pidcomm {

void flush_window(const Kernels &kernels, const std::vector<BankPair> &bank_pairs, uint64_t offset, uint64_t bytes, int threads) {
  if (bytes == 0) return;
  const uint64_t first = offset / kWordBytes, last = (offset + bytes) / kWordBytes;
  const uint64_t first_run = first / kRunWords, runs = (last - 1) / kRunWords + 1 - first_run;
  WorkQueue queue(bank_pairs.size() * runs, threads);
  run_threads(threads, [&](int thread) {
    queue.each(thread, [&](uint64_t unit) {
      const BankPair &pair = bank_pairs[unit / runs];
      const uint64_t run = first_run + unit % runs;
      const uint64_t word = std::max(first, run * kRunWords), end = std::min(last, (run + 1) * kRunWords);
      kernels.flush(position_of(pair.base, word).line, static_cast<uint32_t>(end - word), pair.banks);
    });
    kernels.fence();
  });
}

}  // namespace pidcomm
