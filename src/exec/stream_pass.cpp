// The streaming limit: the least work that moves the same bytes. Every word of the windows once, neighbouring banks together.
#include <algorithm>

#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "hostpass/address_map.h"

namespace pidcomm {

namespace {

/// Words of a bank, or of a bank and its neighbour, run by run: a copy where there is as much to write as to read, else loads, then stores.
class StreamWorker {
 public:
  StreamWorker(const Kernels &kernels, bool flushes) : kernels_(kernels), flushes_(flushes) {}

  void run(std::byte *base, uint32_t columns, Range in, Range out) const {
    if (in.last - in.first == out.last - out.first) {
      visit(base, columns, &in, &out);
    } else {
      visit(base, columns, &in, nullptr);
      visit(base, columns, nullptr, &out);
    }
  }

 private:
  void visit(std::byte *base, uint32_t columns, const Range *in, const Range *out) const {
    const Range &longest = in != nullptr ? *in : *out;
    for (uint64_t done = 0, words = longest.last - longest.first; done < words;) {
      uint64_t now = words - done;
      const auto line_of = [&](const Range *range) -> std::byte * {
        if (range == nullptr) return nullptr;
        const LinePosition at = position_of(base, range->first + done);
        now = std::min<uint64_t>(now, at.run_words);
        return at.line;
      };
      std::byte *const from = line_of(in), *const to = line_of(out);
      const uint32_t count = static_cast<uint32_t>(now);
      flush(from, columns, count);
      kernels_.stream(from, to, count, columns);
      flush(from, columns, count);
      done += now;
    }
  }

  void flush(std::byte *line, uint32_t columns, uint32_t words) const {
    if (!flushes_ || line == nullptr) return;
    for (uint32_t column = 0; column < columns; ++column) kernels_.flush(line + kLineBytes * column, words);
    kernels_.fence();
  }

  const Kernels &kernels_;
  const bool flushes_;
};

}  // namespace

void run_stream(const Kernels &kernels, const std::vector<std::byte *> &eg_base, uint64_t src, uint64_t bytes_read, uint64_t dst,
                uint64_t bytes_written, int threads, bool flushes) {
  // Banks d and d + 4 have their lines side by side.
  struct Column {
    std::byte *base;
    uint32_t columns;
  };
  std::vector<std::byte *> bases = eg_base;
  std::sort(bases.begin(), bases.end());
  std::vector<Column> columns;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const bool has_neighbour = i + 1 < bases.size() && bases[i + 1] - bases[i] == static_cast<std::ptrdiff_t>(kLineBytes);
    columns.push_back({bases[i], has_neighbour ? 2u : 1u});
    i += has_neighbour;
  }
  // Both windows are cut into as many steps, so that reads and writes alternate.
  constexpr uint64_t kStreamStepWords = 64;
  const uint64_t in_words = bytes_read / kWordBytes, out_words = bytes_written / kWordBytes;
  const uint64_t steps = std::max<uint64_t>(1, (std::max(in_words, out_words) + kStreamStepWords - 1) / kStreamStepWords);
  const auto part = [&](uint64_t offset, uint64_t words, uint64_t step) {
    const auto at = [&](uint64_t s) { return offset / kWordBytes + std::min(words, words == std::max(in_words, out_words) ? s * kStreamStepWords : words * s / steps); };
    return Range{at(step), at(step + 1)};
  };
  run_threads(threads, [&](int thread) {
    const StreamWorker worker(kernels, flushes);
    const Range range = share_of(columns.size() * steps, thread, threads);
    for (uint64_t unit = range.first; unit < range.last; ++unit) {
      const Column &column = columns[unit / steps];
      worker.run(column.base, column.columns, part(src, in_words, unit % steps), part(dst, out_words, unit % steps));
    }
    kernels.fence();
  });
}

}  // namespace pidcomm
