// The memory of one rank as the host maps it. A region has 8 GiB of addresses, but only written
// pages use memory of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace dpuemu {

/// Unwritten bytes in strict mode. On DIMMs, MRAM holds the bytes of earlier programs.
constexpr uint8_t kLeftoverByte = 0xCB;

class Region {
 public:
  /// Reserves the addresses at the first call. Unwritten bytes are zero or, with leftovers,
  /// kLeftoverByte. If an earlier call had another argument, the bytes change. Returns success.
  bool map(bool has_leftovers);
  void advise_huge_pages(bool on);
  /// Frees the memory of the region and keeps its addresses. All bytes of the region become
  /// unwritten.
  void drop();
  /// Returns the number of bytes of the region that use memory of the host.
  uint64_t resident_bytes() const;

  /// For strict mode: protect(true) makes the region inaccessible until protect(false). Returns
  /// success.
  bool protect(bool on);

  uint8_t *base() const { return base_.load(std::memory_order_acquire); }
  bool is_protected() const { return is_protected_.load(std::memory_order_acquire); }

 private:
  bool reserve();

  std::atomic<uint8_t *> base_{nullptr};  // atomic: the signal handler reads it
  std::atomic<bool> is_protected_{false};
  std::optional<bool> has_leftovers_;  // of the last map() that succeeded
};

/// Installs a SIGSEGV handler at the first call. If the process accesses a protected region, the
/// handler prints a sentence on stderr and SIGSEGV ends the process. The array `regions` must exist
/// until the process ends; the index of a region in this array is the rank number in the sentence.
/// All other faults go to the previous handler.
void install_strict_handler(const Region *const *regions, uint32_t count);

}  // namespace dpuemu
