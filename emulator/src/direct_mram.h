// What a PE program reaches by dereferencing a pointer to MRAM, instead of by DMA.
//
// Such an access is an ordinary instruction relative to gs. At first gs leads nowhere, so that the first access of a program faults; from
// then on it leads to a flat copy of the PE's MRAM, whose pages are filled when first touched and written back at the end of the run. DMA
// goes through the copy where there is one, so both ways see the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "mram_port.h"
#include "pe/calls.h"

namespace dpuemu {

class DirectMram {
 public:
  ~DirectMram();

  /// Takes what every run needs. Returns whether it was there.
  bool reserve();
  /// For a run of this PE. Costs nothing unless the program makes a direct access. Requires reserve().
  void begin(const MramPort &port) { port_ = port; }
  /// Writes back what was touched, and forgets it. Returns how many pages that were.
  uint64_t end();

  /// In the handler of SIGSEGV: whether the access to `address` can be repeated now.
  bool handle_fault(uint64_t address);
  /// What gs must be while the PE's tasklets run.
  uint64_t gs_base() const { return is_used_ ? copy_base_ : nowhere_base_; }

  /// As MramPort.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const;
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const;

 private:
  uint8_t *copy() const { return reinterpret_cast<uint8_t *>(copy_base_) + PE_MRAM_ORIGIN; }
  bool is_loaded(uint64_t page) const { return pages_[page / 64] >> (page % 64) & 1; }

  MramPort port_;
  bool is_used_ = false;
  uint64_t nowhere_base_ = 0, copy_base_ = 0;  // values for gs
  std::vector<uint64_t> pages_;                // bit set of the pages of the copy that are filled
  uint32_t units_ = 0;                         // made accessible since the begin of the run
};

/// Sets the calling thread's gs.
void set_gs_base(uint64_t base);

}  // namespace dpuemu
