#include "pe/direct_mram.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "base/address_map.h"
#include "base/low_memory.h"
#include "runtime/calls.h"

namespace dpuemu {
namespace {

constexpr uint64_t kPages = kMramBytes / kPageBytes;

/// Calls act(page, offset, bytes) for each part of [offset, offset + bytes) within one page.
template <class Act>
void for_each_page(uint64_t offset, uint64_t bytes, Act act) {
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t page = offset / kPageBytes,
                   part = std::min(end, (page + 1) * kPageBytes) - offset;
    act(page, offset, part);
    offset += part;
  }
}

constexpr uint64_t kGsBytes = (UINT64_C(4) << 30) + kPageBytes;
void exclude_from_core_files(void *range) { madvise(range, kGsBytes, MADV_DONTDUMP); }

/// Reserves inaccessible addresses: all addresses that a 32-bit pointer and an operand of 16 bytes
/// reach from gs. Returns 0 on failure.
uint64_t reserve_gs_range() {
  void *reserved =
      mmap(nullptr, kGsBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return 0;
  exclude_from_core_files(reserved);
  return reinterpret_cast<uint64_t>(reserved);
}

/// The windows in which a program sees its MRAM, from gs: MRAM addresses begin at 0, but hardware
/// ignores the upper bits, so programs may also use the addresses of the host's symbols.
constexpr uint64_t kWindows[] = {0, PE_MRAM_ORIGIN};

bool protect_windows(uint64_t base, uint64_t offset, uint64_t bytes, int protection) {
  return std::all_of(std::begin(kWindows), std::end(kWindows), [&](uint64_t window) {
    return mprotect(reinterpret_cast<void *>(base + window + offset), bytes, protection) == 0;
  });
}

/// Reserves a gs range with an inaccessible copy of MRAM, which both windows show. Returns 0 on
/// failure.
uint64_t reserve_copy() {
  const uint64_t base = reserve_gs_range();
  if (base == 0) return 0;
  const int file = memfd_create("dpuemu-mram", MFD_CLOEXEC);
  bool is_mapped = file >= 0 && ftruncate(file, kMramBytes) == 0;
  for (const uint64_t window : kWindows) {
    void *const wanted = reinterpret_cast<void *>(base + window);
    is_mapped = is_mapped && mmap(wanted, kMramBytes, PROT_NONE,
                                  MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == wanted;
  }
  if (file >= 0) close(file);
  exclude_from_core_files(reinterpret_cast<void *>(base));
  if (is_mapped) return base;
  munmap(reinterpret_cast<void *>(base), kGsBytes);
  return 0;
}

/// Returns the number of bytes that the next page fault makes accessible. A process can have only a
/// limited number of mappings, so these units grow: a run uses at most 4 * (kSmallUnits +
/// kMediumUnits + 32) mappings.
constexpr uint32_t kSmallUnits = 32, kMediumUnits = 32;
constexpr uint64_t unit_bytes(uint32_t units) {
  return units < kSmallUnits                  ? kPageBytes
         : units < kSmallUnits + kMediumUnits ? UINT64_C(64) << 10
                                              : UINT64_C(2) << 20;
}

}  // namespace

void set_gs_base(uint64_t base) { syscall(SYS_arch_prctl, ARCH_SET_GS, base); }

DirectMram::~DirectMram() {
  if (copy_base_ != 0) munmap(reinterpret_cast<void *>(copy_base_), kGsBytes);
}

bool DirectMram::reserve() {
  static std::mutex mutex;
  static uint64_t shared_nowhere = 0;
  std::lock_guard<std::mutex> lock(mutex);
  if (shared_nowhere == 0) shared_nowhere = reserve_gs_range();
  nowhere_base_ = shared_nowhere;
  pages_.resize(kPages / 64);
  return nowhere_base_ != 0;
}

bool DirectMram::handle_fault(uint64_t address) {
  const auto *const window =
      std::find_if(std::begin(kWindows), std::end(kWindows),
                   [&](uint64_t begin) { return address - gs_base() - begin < kMramBytes; });
  if (window == std::end(kWindows)) return false;
  const uint64_t place = address - gs_base() - *window;
  if (!is_used_) {
    if (copy_base_ == 0) copy_base_ = reserve_copy();
    lacks_memory_ = copy_base_ == 0;
    if (lacks_memory_) return false;
    is_used_ = true;
    set_gs_base(copy_base_);
    return true;
  }
  const uint64_t bytes = unit_bytes(units_), begin = place / bytes * bytes;
  if (is_loaded(place / kPageBytes)) return false;
  lacks_memory_ = !protect_windows(copy_base_, begin, bytes, PROT_READ | PROT_WRITE);
  if (lacks_memory_) return false;
  ++units_;
  for (uint64_t offset = begin; offset < begin + bytes; offset += kPageBytes) {
    const uint64_t page = offset / kPageBytes;
    if (is_loaded(page)) continue;
    port_.read(offset, kPageBytes, copy() + offset);
    pages_[page / 64] |= UINT64_C(1) << (page % 64);
  }
  return true;
}

uint64_t DirectMram::end() {
  if (!is_used_) return 0;
  uint64_t count = 0;
  for (uint64_t word = 0; word < pages_.size(); ++word) {
    for (uint64_t left = pages_[word]; left != 0; left &= left - 1, ++count) {
      const uint64_t offset =
          (word * 64 + static_cast<uint64_t>(std::countr_zero(left))) * kPageBytes;
      port_.write(offset, kPageBytes, copy() + offset);
    }
    pages_[word] = 0;
  }
  // If this fails, drop the copy, because the next run must not read the old contents of the copy.
  if (madvise(copy(), kMramBytes, MADV_REMOVE) != 0 ||
      !protect_windows(copy_base_, 0, kMramBytes, PROT_NONE)) {
    munmap(reinterpret_cast<void *>(copy_base_), kGsBytes);
    copy_base_ = 0;
  }
  is_used_ = false;
  units_ = 0;
  return count;
}

void DirectMram::read_used(uint64_t offset, uint64_t bytes, uint8_t *to) const {
  for_each_page(offset, bytes, [&](uint64_t page, uint64_t begin, uint64_t part) {
    if (is_loaded(page))
      std::copy_n(copy() + begin, part, to);
    else
      port_.read(begin, part, to);
    to += part;
  });
}

void DirectMram::write_used(uint64_t offset, uint64_t bytes, const uint8_t *from) const {
  for_each_page(offset, bytes, [&](uint64_t page, uint64_t begin, uint64_t part) {
    if (is_loaded(page))
      std::copy_n(from, part, copy() + begin);
    else
      port_.write(begin, part, from);
    from += part;
  });
}

}  // namespace dpuemu
