// The streaming limit: the least work that moves the same bytes. Every word of the windows once, neighbouring banks together.
#include <algorithm>

#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "hostpass/address_map.h"

namespace pidcomm {

namespace {

/// One entangled group, or two whose lines are neighbours.
struct Column {
  std::byte *base;
  uint32_t columns;
};

/// Words [first, last) of a window that ends at window_end.
struct Words {
  uint64_t first, last, window_end;
  uint64_t count() const { return last - first; }
};

class StreamWorker {
 public:
  StreamWorker(const Kernels &kernels, bool flushes) : kernels_(kernels), flushes_(flushes) {}

  /// A copy where there is as much to write as to read, else loads, then stores.
  void run(const Column &column, const Words &in, const Words &out) const {
    if (in.count() == out.count()) {
      visit(column, &in, &out);
    } else {
      visit(column, &in, nullptr);
      visit(column, nullptr, &out);
    }
  }

 private:
  void visit(const Column &column, const Words *in, const Words *out) const {
    const uint64_t words = (in != nullptr ? in : out)->count();
    for (uint64_t done = 0; done < words;) {
      uint64_t now = words - done;
      uint32_t prefetch_end = 0;
      const std::byte *from = nullptr;
      std::byte *to = nullptr;
      if (in != nullptr) {
        const LinePosition at = position_of(column.base, in->first + done);
        now = std::min<uint64_t>(now, at.run_words);
        from = at.line;
        if (!flushes_) prefetch_end = static_cast<uint32_t>(std::min<uint64_t>(at.run_words, in->window_end - in->first - done));
      }
      if (out != nullptr) {
        const LinePosition at = position_of(column.base, out->first + done);
        now = std::min<uint64_t>(now, at.run_words);
        to = at.line;
      }
      const uint32_t count = static_cast<uint32_t>(now);
      flush(from, column.columns, count);
      kernels_.stream(from, to, count, column.columns, prefetch_end);
      flush(from, column.columns, count);
      done += now;
    }
  }

  void flush(const std::byte *line, uint32_t columns, uint32_t words) const {
    if (!flushes_ || line == nullptr) return;
    for (uint32_t column = 0; column < columns; ++column) kernels_.flush(line + kLineBytes * column, words);
    kernels_.fence();
  }

  const Kernels &kernels_;
  const bool flushes_;
};

std::vector<Column> columns_of(std::vector<std::byte *> bases) {
  std::sort(bases.begin(), bases.end());
  std::vector<Column> columns;
  for (std::byte *base : bases) {
    const bool is_neighbour =
        !columns.empty() && columns.back().columns == 1 && base - columns.back().base == static_cast<std::ptrdiff_t>(kLineBytes);
    if (is_neighbour)
      columns.back().columns = 2;
    else
      columns.push_back({base, 1});
  }
  return columns;
}

}  // namespace

void run_stream(const Kernels &kernels, const std::vector<std::byte *> &eg_base, uint64_t src, uint64_t bytes_read, uint64_t dst,
                uint64_t bytes_written, int threads, bool flushes) {
  const std::vector<Column> columns = columns_of(eg_base);
  // Both windows are cut into as many steps, so that reads and writes alternate.
  constexpr uint64_t kStreamStepWords = 64;
  const uint64_t longest = std::max(bytes_read, bytes_written) / kWordBytes;
  const uint64_t steps = std::max<uint64_t>(1, (longest + kStreamStepWords - 1) / kStreamStepWords);
  const auto part = [&](uint64_t offset, uint64_t bytes, uint64_t step) {
    const uint64_t first = offset / kWordBytes, words = bytes / kWordBytes;
    const auto at = [&](uint64_t s) { return first + (words == longest ? std::min(words, s * kStreamStepWords) : words * s / steps); };
    return Words{at(step), at(step + 1), first + words};
  };
  run_threads(threads, [&](int thread) {
    const StreamWorker worker(kernels, flushes);
    const Range range = share_of(columns.size() * steps, thread, threads);
    for (uint64_t unit = range.first; unit < range.last; ++unit)
      worker.run(columns[unit / steps], part(src, bytes_read, unit % steps), part(dst, bytes_written, unit % steps));
    kernels.fence();
  });
}

}  // namespace pidcomm
