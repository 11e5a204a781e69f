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
  /// Returns the line in the region that holds the byte at the offset.
  const uint8_t *line_of(uint64_t offset) const {
    return region_ + line_offset(bank_, offset & ~(kWordBytes - 1));
  }

 private:
  uint8_t *region_ = nullptr;
  uint32_t chip_ = 0, bank_ = 0;
};

}  // namespace dpuemu
