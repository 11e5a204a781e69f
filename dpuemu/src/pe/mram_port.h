// The access of one PE to its MRAM.
#pragma once

#include <cstdint>

#include "base/address_map.h"

namespace dpuemu {

class MramPort {
 public:
  MramPort() = default;
  MramPort(uint8_t *region, uint32_t chip, uint32_t bank)
      : region_(region), chip_(chip), bank_(bank) {}

  /// Offset and bytes are multiples of 8, and offset + bytes <= 64 MiB. Signal handlers may call
  /// these functions.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const;
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const;
  /// Loads the line at an offset into the caches.
  void prefetch(uint64_t offset) const {
    __builtin_prefetch(region_ + line_offset(bank_, offset));
  }

 private:
  uint8_t *region_ = nullptr;
  uint32_t chip_ = 0, bank_ = 0;
};

}  // namespace dpuemu
