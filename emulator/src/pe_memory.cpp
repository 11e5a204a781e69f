#include "pe_memory.h"

#include <sys/mman.h>

#include "low_memory.h"

namespace dpuemu {
namespace {

// Per PE: 64 KiB of WRAM, the page of mutexes, a gap, text, a gap.
constexpr uint64_t kStrideBytes = 0x40000;
constexpr uint64_t kTextOffset = 0x20000;
constexpr uint64_t kPageBytes = 0x1000;
constexpr uint64_t kWramAndMutexBytes = PE_WRAM_BYTES + kPageBytes;
static_assert(PE_ATOMIC_ORIGIN == PE_WRAM_BYTES && PE_ATOMIC_BYTES <= kPageBytes && kTextOffset + PE_TEXT_BYTES <= kStrideBytes);

}  // namespace

bool RankPlaces::reserve() {
  // One stride more: text of the last PE ends where the next WRAM would begin.
  if (base_ == nullptr) base_ = reserve_low(kStrideBytes * (kDpusPerRank + 1));
  return base_ != nullptr;
}

PePlace RankPlaces::of(uint32_t dpu_index) const {
  uint8_t *const place = base_ + kStrideBytes * dpu_index;
  return {place, place + kTextOffset};
}

bool RankPlaces::open_wram(uint32_t dpu_index) { return mprotect(of(dpu_index).wram, kWramAndMutexBytes, PROT_READ | PROT_WRITE) == 0; }

bool RankPlaces::set_text(uint32_t dpu_index, uint32_t bytes, bool executable) {
  return mprotect(of(dpu_index).text, bytes, executable ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE) == 0;
}

void RankPlaces::drop() {
  if (base_ == nullptr) return;
  const uint64_t bytes = kStrideBytes * (kDpusPerRank + 1);
  madvise(base_, bytes, MADV_DONTNEED);
  mprotect(base_, bytes, PROT_NONE);
}

bool Stacks::reserve() {
  if (base_ == nullptr) base_ = reserve_low(uint64_t{PE_STACK_BLOCK_BYTES} * PE_MAX_TASKLETS);
  return base_ != nullptr;
}

void Stacks::set_usable(uint32_t usable_bytes) {
  if (usable_bytes == usable_bytes_) return;
  for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) {
    uint8_t *const block = base_ + uint64_t{PE_STACK_BLOCK_BYTES} * i;
    const uint32_t below = PE_STACK_BLOCK_BYTES - usable_bytes;
    mprotect(block, below, PROT_NONE);
    mprotect(block + below, usable_bytes, PROT_READ | PROT_WRITE);
  }
  usable_bytes_ = usable_bytes;
}

uint32_t Stacks::owner(uint64_t address) const {
  if (base_ == nullptr || address < begin()) return PE_MAX_TASKLETS;
  const uint64_t block = (address - begin()) / PE_STACK_BLOCK_BYTES;
  return block < PE_MAX_TASKLETS ? static_cast<uint32_t>(block) : PE_MAX_TASKLETS;
}

bool Stacks::contains(uint64_t address, uint64_t bytes) const {
  const uint32_t tasklet = owner(address);
  return tasklet < PE_MAX_TASKLETS && address >= end(tasklet) - usable_bytes_ && bytes <= end(tasklet) - address;
}

}  // namespace dpuemu
