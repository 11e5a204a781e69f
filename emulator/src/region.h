// The memory of one rank as the host maps it: 8 GiB of addresses, backed by pages only where something was written.
#pragma once

#include <atomic>
#include <cstdint>

namespace dpuemu {

class Region {
 public:
  /// Reserves the addresses if that has not been done yet. Returns whether they are there.
  bool map();
  void advise_huge_pages(bool on);
  /// Forgets the contents and gives the memory back; the addresses stay.
  void drop();
  /// Bytes that are backed by memory.
  uint64_t resident_bytes() const;

  /// Strict mode: no access by anyone until protect(false).
  void protect(bool on);

  uint8_t *base() const { return base_.load(std::memory_order_acquire); }
  bool is_protected() const { return is_protected_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint8_t *> base_{nullptr};  // atomic: the signal handler looks at it
  std::atomic<bool> is_protected_{false};
};

/// Makes the process end with a sentence on stderr, and by SIGSEGV, when it touches a protected region. `regions` lives forever; its index
/// is the rank named in the sentence. Faults elsewhere go to the handler that was there before. Once installed it stays.
void install_strict_handler(const Region *const *regions, uint32_t count);

}  // namespace dpuemu
