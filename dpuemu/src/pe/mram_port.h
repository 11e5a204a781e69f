// The access of one PE to its MRAM.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/address_map.h"
#include "base/line_kernels.h"

namespace dpuemu {

class MramPort {
 public:
  MramPort() = default;
  MramPort(uint8_t *region, uint32_t chip, uint32_t bank)
      : kernels_(&line_kernels()), region_(region), chip_(chip), bank_(bank) {}

  /// Offset and bytes are multiples of 8, and offset + bytes <= 64 MiB. Signal handlers may call
  /// these functions.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const {
    for_each_run(offset, bytes, [&](const uint8_t *lines, uint32_t words) {
      kernels_->read_lane(lines, chip_, words, to);
      to += kWordBytes * words;
    });
  }
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const {
    for_each_run(offset, bytes, [&](uint8_t *lines, uint32_t words) {
      kernels_->write_lane(lines, chip_, words, from);
      from += kWordBytes * words;
    });
  }
  /// Starts to load the first lines of a transfer into the caches. A run calls this function when a
  /// tasklet begins the transfer; other tasklets run before the run carries it out. Otherwise small
  /// transfers at random addresses wait for memory. The address and the bytes may be invalid.
  /// Always inline, because gcc removes calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(uint64_t address, uint64_t bytes) const {
    const uint64_t lines = std::min(bytes / kWordBytes, kPrefetchedLines);
    const uint8_t *const first =
        region_ + line_offset(bank_, address % kMramBytes & ~(kWordBytes - 1));
#pragma GCC unroll 1  // the unrolled loop is slower
    for (uint64_t i = 0; i < lines; ++i) __builtin_prefetch(first + i * kLineStride);
  }

 private:
  /// Calls act(first line in the region, words) for each piece of [offset, offset + bytes) within
  /// one run.
  template <class Act>
  void for_each_run(uint64_t offset, uint64_t bytes, Act act) const {
    for (const uint64_t end = offset + bytes; offset < end;) {
      const uint64_t piece = std::min(end, (offset / kRunBytes + 1) * kRunBytes) - offset;
      act(region_ + line_offset(bank_, offset), static_cast<uint32_t>(piece / kWordBytes));
      offset += piece;
    }
  }

  static constexpr uint64_t kPrefetchedLines = 4;  // more are not faster

  const LineKernels *kernels_ = nullptr;
  uint8_t *region_ = nullptr;
  uint32_t chip_ = 0, bank_ = 0;
};

}  // namespace dpuemu
