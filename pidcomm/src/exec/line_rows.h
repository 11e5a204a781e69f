// Turns lines of one entangled group into rows of its lanes, and rows into lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/geometry.h"
#include "exec/lines.h"
#include "exec/sweep_pass.h"
#include "line_kernels/tuning.h"

namespace pidcomm {

/// The functions of one thread.
class LineRows {
 public:
  static constexpr uint64_t kBufferBytes = kCallBufferBytes;

  /// buffer: kBufferBytes.
  LineRows(const HostPass &pass, std::byte *buffer) : pass_(pass), buffer_(buffer) {}

  uint64_t lines_loaded() const { return lines_loaded_; }

  /// Turns the lines of `words` words from word `word` on into rows; the row of lane l begins at
  /// rows + l * row_bytes. Only words before prefetch_end may be prefetched.
  void load(uint32_t eg, uint64_t word, uint32_t words, std::byte *rows, std::size_t row_bytes,
            uint64_t prefetch_end) {
    lines_loaded_ += words;
    while (words != 0) {
      const LinePosition position = position_of(pass_.eg_base[eg], word);
      const uint32_t count = std::min(words, position.run_words);
      const std::byte *const in = position.line;
      std::byte *out[kLanes];
      for (uint32_t lane = 0; lane < kLanes; ++lane) out[lane] = rows + lane * row_bytes;
      const SweepItem item = {&in, out};
      call(Pass::to_host, item, 1, kLanes, count,
           static_cast<uint32_t>(std::min<uint64_t>(position.run_words, prefetch_end - word)));
      rows += count * kWordBytes;
      word += count;
      words -= count;
    }
  }

  /// Prefetches lines into the second-level cache.
  void prefetch(uint32_t eg, uint64_t word, uint32_t words) const {
    while (words != 0) {
      const LinePosition position = position_of(pass_.eg_base[eg], word);
      const uint32_t count = std::min(words, position.run_words);
      pass_.kernels.prefetch(position.line, count);
      word += count;
      words -= count;
    }
  }

  /// Turns the rows of 8 lanes into lines.
  void store(uint32_t eg, uint64_t word, uint32_t words, const std::byte *const *rows) const {
    for (uint32_t at = 0; at < words;) {
      const LinePosition position = position_of(pass_.eg_base[eg], word + at);
      const uint32_t count = std::min(words - at, position.run_words);
      const std::byte *in[kLanes];
      for (uint32_t lane = 0; lane < kLanes; ++lane) in[lane] = rows[lane] + at * kWordBytes;
      std::byte *const out = position.line;
      const SweepItem item = {in, &out};
      call(Pass::from_host, item, kLanes, 1, count, count);
      at += count;
    }
  }

 private:
  void call(Pass pass, const SweepItem &item, uint32_t in_count, uint32_t out_count, uint32_t words,
            uint32_t prefetch_end) const {
    SweepCall call{};
    call.tuning = tuning_of(pass);
    call.items = &item;
    call.item_count = 1;
    call.in_count = in_count;
    call.out_count = out_count;
    call.words = words;
    call.prefetch_end = prefetch_end;
    call.item_buffers = buffer_;
    pass_.kernels.pass[static_cast<int>(pass)](call);
  }

  const HostPass &pass_;
  std::byte *const buffer_;
  uint64_t lines_loaded_ = 0;
};

}  // namespace pidcomm
