// The memory of one rank as the host maps it: 8 GiB of addresses; only written pages use memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace dpuemu {

class Region {
 public:
  /// Reserves the addresses at the first call. Returns whether this succeeded.
  bool map();
  void advise_huge_pages(bool on);
  /// Frees the memory and keeps the addresses; the contents become zero.
  void drop();
  /// Returns how many bytes are backed by memory.
  uint64_t resident_bytes() const;

  /// Strict mode: protect(true) makes the region inaccessible until protect(false).
  void protect(bool on);

  uint8_t *base() const { return base_.load(std::memory_order_acquire); }
  bool is_protected() const { return is_protected_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint8_t *> base_{nullptr};  // atomic: the signal handler reads it
  std::atomic<bool> is_protected_{false};
};

/// Installs a handler once. If the process accesses a protected region, the handler prints a sentence on stderr and SIGSEGV ends the
/// process. `regions` must live forever; an index in it is the rank in the sentence. Other faults go to the previous handler.
void install_strict_handler(const Region *const *regions, uint32_t count);

}  // namespace dpuemu
