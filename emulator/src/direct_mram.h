// What a PE program reaches by dereferencing a pointer to MRAM, instead of by DMA.
//
// Such an access is an ordinary instruction relative to gs. The first one of a program faults, and from then on gs leads to a flat copy of
// the PE's MRAM, whose pages are filled when first touched and written back at the end of the run. DMA goes through the copy where there is
// one, so both ways see the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "mram_port.h"

namespace dpuemu {

class DirectMram {
 public:
  /// For a run of this PE. Costs nothing unless the program makes a direct access.
  void begin(const MramPort &port);
  /// Writes back what was touched, and forgets it. Returns how many pages that were.
  uint64_t end();

  /// In the handler of SIGSEGV: whether the access to `address` can be repeated now.
  bool handle_fault(uint64_t address);
  /// Must be 0 or what gs is while the PE's tasklets run.
  uint64_t gs_base() const { return is_used_ ? gs_base_ : 0; }

  /// As MramPort.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const;
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const;

 private:
  bool reserve();
  bool is_loaded(uint64_t page) const { return pages_[page / 64] >> (page % 64) & 1; }

  MramPort port_;
  bool is_used_ = false;
  uint8_t *copy_ = nullptr;  // 64 MiB
  uint64_t gs_base_ = 0;
  std::vector<uint64_t> pages_;  // bit set; its size is fixed by reserve()
};

/// Sets the calling thread's gs.
void set_gs_base(uint64_t base);

}  // namespace dpuemu
