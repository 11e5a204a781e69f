// Coherence policy `hardware`: before the first line of a window is loaded, every line of it leaves the caches.
//
// PEs write MRAM behind the caches, so a line that is in one when the host becomes the owner may be old. One sweep over the whole window
// and one fence per thread cost far less than a fence every few lines: a fence waits for every store under way. Flushing again after use
// would add nothing: whoever loads next has to flush first anyway, and the passes leave no line dirty, as they store whole lines past the
// caches.
#include <algorithm>

#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "hostpass/address_map.h"

namespace pidcomm {

std::vector<Column> columns_of(std::vector<std::byte *> eg_base) {
  std::sort(eg_base.begin(), eg_base.end());
  std::vector<Column> columns;
  for (std::byte *base : eg_base) {
    const bool is_neighbour =
        !columns.empty() && columns.back().banks == 1 && base - columns.back().base == static_cast<std::ptrdiff_t>(kLineBytes);
    if (is_neighbour)
      columns.back().banks = 2;
    else
      columns.push_back({base, 1});
  }
  return columns;
}

void flush_window(const Kernels &kernels, const std::vector<Column> &columns, uint64_t offset, uint64_t bytes, int threads) {
  if (bytes == 0) return;
  const uint64_t first = offset / kWordBytes, last = (offset + bytes) / kWordBytes;
  const uint64_t first_run = first / kRunWords, runs = (last - 1) / kRunWords + 1 - first_run;
  run_threads(threads, [&](int thread) {
    const Range range = share_of(columns.size() * runs, thread, threads);
    for (uint64_t unit = range.first; unit < range.last; ++unit) {
      const Column &column = columns[unit / runs];
      const uint64_t run = first_run + unit % runs;
      const uint64_t word = std::max(first, run * kRunWords), end = std::min(last, (run + 1) * kRunWords);
      kernels.flush(position_of(column.base, word).line, static_cast<uint32_t>(end - word), column.banks);
    }
    kernels.fence();
  });
}

}  // namespace pidcomm
