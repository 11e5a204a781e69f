// Handles direct MRAM accesses: a PE program dereferences a pointer to MRAM, without DMA.
//
// Such an access is an ordinary instruction relative to gs. At first gs points to inaccessible addresses, so the first access faults. Then
// gs points to a flat copy of the PE's MRAM: a page is filled at its first access and written back at the end of the run. DMA uses the
// filled pages too, so both see the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "mram_port.h"
#include "pe/calls.h"

namespace dpuemu {

class DirectMram {
 public:
  ~DirectMram();

  /// Reserves the resources of every run. Returns whether this succeeded.
  bool reserve();
  /// Begins a run of this PE. Costs nothing unless the program makes a direct access. Requires reserve().
  void begin(const MramPort &port) { port_ = port; }
  /// Writes back the filled pages and discards the copy. Returns the number of these pages.
  uint64_t end();

  /// In the handler of SIGSEGV: returns whether the access to `address` can now be repeated.
  bool handle_fault(uint64_t address);
  /// Returns the value of gs while the PE's tasklets run.
  uint64_t gs_base() const { return is_used_ ? copy_base_ : nowhere_base_; }

  /// Do the same as the functions of MramPort.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const;
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const;

 private:
  uint8_t *copy() const { return reinterpret_cast<uint8_t *>(copy_base_) + PE_MRAM_ORIGIN; }
  bool is_loaded(uint64_t page) const { return pages_[page / 64] >> (page % 64) & 1; }

  MramPort port_;
  bool is_used_ = false;
  uint64_t nowhere_base_ = 0, copy_base_ = 0;  // the two values for gs
  std::vector<uint64_t> pages_;                // bit set of the pages of the copy that are filled
  uint32_t units_ = 0;                         // number of units made accessible in this run
};

/// Sets gs of the calling thread.
void set_gs_base(uint64_t base);

}  // namespace dpuemu
