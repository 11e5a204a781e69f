#include "direct_mram.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "address_map.h"
#include "pe/calls.h"

namespace dpuemu {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kPages = kMramBytes / kPageBytes;

/// act(page, offset, bytes) for each part of [offset, offset + bytes) within one page.
template <class Act>
void for_each_page(uint64_t offset, uint64_t bytes, Act act) {
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t page = offset / kPageBytes, part = std::min(end, (page + 1) * kPageBytes) - offset;
    act(page, offset, part);
    offset += part;
  }
}

}  // namespace

void set_gs_base(uint64_t base) { syscall(SYS_arch_prctl, ARCH_SET_GS, base); }

bool DirectMram::reserve() {
  if (copy_ != nullptr) return true;
  // From gs + 0 on, nothing else may be hit by an address below the start of MRAM.
  const uint64_t bytes = PE_MRAM_ORIGIN + kMramBytes;
  void *reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  gs_base_ = reinterpret_cast<uint64_t>(reserved);
  copy_ = static_cast<uint8_t *>(reserved) + PE_MRAM_ORIGIN;
  return true;
}

bool DirectMram::handle_fault(uint64_t address) {
  if (!is_used_) {
    if (address < PE_MRAM_ORIGIN || address - PE_MRAM_ORIGIN >= kMramBytes || pages_.empty() || !reserve()) return false;
    is_used_ = true;
    set_gs_base(gs_base_);
    return true;
  }
  const uint64_t offset = address - reinterpret_cast<uint64_t>(copy_);
  if (address < reinterpret_cast<uint64_t>(copy_) || offset >= kMramBytes || is_loaded(offset / kPageBytes)) return false;
  const uint64_t page = offset / kPageBytes;
  uint8_t *const bytes = copy_ + page * kPageBytes;
  if (mprotect(bytes, kPageBytes, PROT_READ | PROT_WRITE) != 0) return false;
  port_.read(page * kPageBytes, kPageBytes, bytes);
  pages_[page / 64] |= UINT64_C(1) << (page % 64);
  return true;
}

void DirectMram::begin(const MramPort &port) {
  port_ = port;
  if (pages_.empty()) pages_.resize(kPages / 64);
}

uint64_t DirectMram::end() {
  if (!is_used_) return 0;
  uint64_t count = 0;
  for (uint64_t word = 0; word < pages_.size(); ++word) {
    for (uint64_t left = pages_[word]; left != 0; left &= left - 1, ++count) {
      const uint64_t offset = (word * 64 + static_cast<uint64_t>(std::countr_zero(left))) * kPageBytes;
      port_.write(offset, kPageBytes, copy_ + offset);
      madvise(copy_ + offset, kPageBytes, MADV_DONTNEED);
      mprotect(copy_ + offset, kPageBytes, PROT_NONE);
    }
    pages_[word] = 0;
  }
  is_used_ = false;
  return count;
}

void DirectMram::read(uint64_t offset, uint64_t bytes, uint8_t *to) const {
  if (!is_used_) return port_.read(offset, bytes, to);
  for_each_page(offset, bytes, [&](uint64_t page, uint64_t begin, uint64_t part) {
    if (is_loaded(page))
      std::copy_n(copy_ + begin, part, to);
    else
      port_.read(begin, part, to);
    to += part;
  });
}

void DirectMram::write(uint64_t offset, uint64_t bytes, const uint8_t *from) const {
  if (!is_used_) return port_.write(offset, bytes, from);
  for_each_page(offset, bytes, [&](uint64_t page, uint64_t begin, uint64_t part) {
    if (is_loaded(page))
      std::copy_n(from, part, copy_ + begin);
    else
      port_.write(begin, part, from);
    from += part;
  });
}

}  // namespace dpuemu
