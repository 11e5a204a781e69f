// Handles direct MRAM accesses: a PE program dereferences a pointer to MRAM, without DMA.
//
// A direct MRAM access is an ordinary x86-64 instruction with an address relative to the segment
// register gs. At the start of a run, gs points to inaccessible addresses, so the first direct
// access faults. After this fault, gs points to a flat copy of the PE's MRAM. The emulator fills a
// page of the copy at the first access to the page, and writes the page back at the end of the run.
// DMA also uses the filled pages, so DMA and direct accesses see the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address_map.h"
#include "base/low_memory.h"
#include "machine/debugger.h"
#include "pe/mram_port.h"
#include "runtime/calls.h"

namespace dpuemu {

class DirectMram {
 public:
  ~DirectMram();

  /// Reserves the resources that every run needs. Returns whether the reservation succeeded.
  bool reserve();
  /// Sets the members for the copy. Requires reserve().
  void show_to(DebuggedRun &run) const {
    run.copy = &copy_base_;
    run.copy_pages = pages_.data();
    run.has_copy = &is_used_;
  }
  /// Begins a run of this PE. begin() takes no time unless the program makes a direct access.
  /// Requires reserve().
  void begin(const MramPort &port) {
    port_ = port;
    lacks_memory_ = false;
  }
  /// Writes back the filled pages and discards the copy. Returns the number of filled pages.
  uint64_t end();

  /// Call this function in the handler of SIGSEGV. Returns whether the access to `address` can now
  /// be repeated.
  bool handle_fault(uint64_t address);
  /// Returns whether handle_fault has failed in this run because the host has no memory.
  bool lacks_memory() const { return lacks_memory_; }
  /// If `address` is the target of a direct access, returns its MRAM address.
  std::optional<uint32_t> mram_address_of(uint64_t address) const {
    return address - gs_base() <= UINT32_MAX
               ? std::optional(static_cast<uint32_t>(address - gs_base()))
               : std::nullopt;
  }
  /// Returns the value of gs while the PE's tasklets run.
  uint64_t gs_base() const { return is_used_ ? copy_base_ : nowhere_base_; }

  /// Returns whether the program has directly accessed the page that contains the offset.
  bool has_page(uint64_t offset) const { return is_used_ && is_loaded(offset / kPageBytes); }
  /// Calls act(offset) for each page that the program has directly accessed.
  template <class Act>
  void for_each_used_page(Act act) const {
    for (uint64_t page = 0; is_used_ && page < 64 * pages_.size(); ++page)
      if (is_loaded(page)) act(page * kPageBytes);
  }
  /// Do the same as the functions read and write of MramPort.
  void read(uint64_t offset, uint64_t bytes, uint8_t *to) const {
    is_used_ ? read_used(offset, bytes, to) : port_.read(offset, bytes, to);
  }
  void write(uint64_t offset, uint64_t bytes, const uint8_t *from) const {
    is_used_ ? write_used(offset, bytes, from) : port_.write(offset, bytes, from);
  }
  /// Does the same as MramPort::prefetch, which has no use for pages of the copy.
  [[gnu::always_inline]] void prefetch(uint64_t address, uint64_t bytes) const {
    port_.prefetch(address, bytes);
  }

 private:
  void read_used(uint64_t offset, uint64_t bytes, uint8_t *to) const;
  void write_used(uint64_t offset, uint64_t bytes, const uint8_t *from) const;
  uint8_t *copy() const { return reinterpret_cast<uint8_t *>(copy_base_); }
  bool is_loaded(uint64_t page) const { return pages_[page / 64] >> (page % 64) & 1; }

  MramPort port_;
  bool is_used_ = false, lacks_memory_ = false;
  uint64_t nowhere_base_ = 0,
           copy_base_ = 0;       // the two values of gs: before and after the first direct access
  std::vector<uint64_t> pages_;  // bit set of the pages of the copy that are filled
  uint32_t units_ = 0;  // number of units of the copy that are accessible in the current run
};

/// Sets gs of the calling thread.
void set_gs_base(uint64_t base);

}  // namespace dpuemu
