// Coherence policy `hardware`: flushes every line of a window from the caches before it loads the
// first line.
//
// The caches do not see the writes of PEs, so a cached MRAM line may be stale when the host becomes
// the owner of the MRAM. A fence waits for all pending stores. One sweep over the complete window
// with one fence per thread is therefore much faster than a sweep with a fence after every few
// lines. A flush after the pass is not necessary, because the next call flushes lines before it
// loads them, and non-temporal stores do not leave dirty lines.
#include "exec/flush.h"

#include <algorithm>

#include "base/geometry.h"
#include "exec/parallel.h"

namespace pidcomm {

void flush_window(const Kernels &kernels, const std::vector<BankPair> &bank_pairs, uint64_t offset,
                  uint64_t bytes, int threads) {
  if (bytes == 0) return;
  const uint64_t first = offset / kWordBytes, last = (offset + bytes) / kWordBytes;
  const uint64_t first_run = first / kRunWords, runs = (last - 1) / kRunWords + 1 - first_run;
  WorkQueue queue(bank_pairs.size() * runs, threads);
  run_threads(threads, [&](int thread) {
    queue.each(thread, [&](uint64_t unit) {
      const BankPair &pair = bank_pairs[unit / runs];
      const uint64_t run = first_run + unit % runs;
      const uint64_t word = std::max(first, run * kRunWords),
                     end = std::min(last, (run + 1) * kRunWords);
      kernels.flush(position_of(pair.base, word).line, static_cast<uint32_t>(end - word),
                    pair.banks);
    });
    kernels.fence();
  });
}

void flush_bytes(const Kernels &kernels, const void *begin, uint64_t bytes) {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uint64_t first = address / kLineBytes,
                 lines = (address + bytes - 1) / kLineBytes - first + 1, pairs = lines / 2;
  const auto *const line = reinterpret_cast<const std::byte *>(first * kLineBytes);
  // Two lines that follow each other are the lines of a bank pair.
  for (uint64_t at = 0; at < pairs; at += kRunWords)
    kernels.flush(line + at * kLineStride, static_cast<uint32_t>(std::min(kRunWords, pairs - at)),
                  2);
  if (lines % 2 != 0) kernels.flush(line + pairs * kLineStride, 1, 1);
  kernels.fence();
}

}  // namespace pidcomm
