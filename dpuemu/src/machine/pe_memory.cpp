#include "machine/pe_memory.h"

#include <sys/mman.h>

#include "base/low_memory.h"

namespace dpuemu {
namespace {

// Each PE has 64 KiB of WRAM, a gap, the page of mutexes, text, counters; then at least 32 KiB
// before the next PE.
constexpr uint64_t kStrideBytes = 0x50000;
constexpr uint64_t kTextOffset = 0x20000;
constexpr uint64_t kChunkBytes = kStrideBytes * RankPlaces::kPesPerChunk;
static_assert(PE_ATOMIC_ORIGIN > PE_WRAM_BYTES && PE_ATOMIC_BYTES < kPageBytes &&
              PE_ATOMIC_ORIGIN + kPageBytes <= kTextOffset);
static_assert(PE_ATOMIC_ORIGIN % kPageBytes == 0 &&
              kTextOffset + PE_TEXT_BYTES + PE_COUNTERS_BYTES + 0x8000 <= kStrideBytes);

}  // namespace

bool RankPlaces::reserve() {
  for (uint8_t *&chunk : chunks_) {
    if (chunk == nullptr) chunk = reserve_low(kChunkBytes);
    if (chunk == nullptr) return false;
  }
  return true;
}

PePlace RankPlaces::of(uint32_t dpu_index) const {
  uint8_t *const place =
      chunks_[dpu_index / kPesPerChunk] + kStrideBytes * (dpu_index % kPesPerChunk);
  return {place, place + kTextOffset};
}

bool RankPlaces::open_wram(uint32_t dpu_index) {
  uint8_t *const wram = of(dpu_index).wram;
  return mprotect(wram, PE_WRAM_BYTES, PROT_READ | PROT_WRITE) == 0 &&
         mprotect(wram + PE_ATOMIC_ORIGIN, kPageBytes, PROT_READ | PROT_WRITE) == 0;
}

bool RankPlaces::set_text(uint32_t dpu_index, uint32_t bytes, bool executable) {
  return mprotect(of(dpu_index).text, bytes,
                  executable ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE) == 0;
}

bool RankPlaces::open_counters(uint32_t dpu_index, uint32_t bytes) {
  return mprotect(of(dpu_index).counters(), bytes, PROT_READ | PROT_WRITE) == 0;
}

bool RankPlaces::enter(uint32_t dpu_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (users_[dpu_index] == 0 && !open_wram(dpu_index)) return false;
  ++users_[dpu_index];
  return true;
}

void RankPlaces::leave(uint32_t dpu_index) {
  std::lock_guard<std::mutex> lock(mutex_);
  // If mprotect fails, strict mode misses accesses to this PE until its next use.
  if (--users_[dpu_index] == 0)
    mprotect(of(dpu_index).wram, PE_ATOMIC_ORIGIN + kPageBytes, PROT_NONE);
}

uint32_t RankPlaces::owner(uint64_t address) const {
  for (uint32_t i = 0; i < kDpusPerRank; ++i) {
    if (chunks_[i / kPesPerChunk] == nullptr) continue;
    const auto wram = reinterpret_cast<uint64_t>(of(i).wram);
    if (address >= wram && address - wram < PE_WRAM_BYTES) return i;
  }
  return kDpusPerRank;
}

void RankPlaces::drop() {
  for (uint8_t *chunk : chunks_) {
    if (chunk == nullptr) continue;
    madvise(chunk, kChunkBytes, MADV_DONTNEED);
    mprotect(chunk, kChunkBytes, PROT_NONE);
  }
}

bool Stacks::reserve() {
  if (base_ == nullptr) base_ = reserve_low(kBytes);
  return base_ != nullptr;
}

Stacks::~Stacks() {
  if (base_ != nullptr) release_low(base_, kBytes);
}

bool Stacks::set_usable(uint32_t tasklet, uint32_t usable_bytes) {
  if (usable_bytes == usable_bytes_[tasklet]) return true;
  uint8_t *const block = reinterpret_cast<uint8_t *>(end(tasklet)) - PE_STACK_BLOCK_BYTES;
  const uint32_t below = PE_STACK_BLOCK_BYTES - usable_bytes;
  const bool has_succeeded = mprotect(block, below, PROT_NONE) == 0 &&
                             mprotect(block + below, usable_bytes, PROT_READ | PROT_WRITE) == 0;
  usable_bytes_[tasklet] = has_succeeded ? usable_bytes : 0;
  return has_succeeded;
}

uint32_t Stacks::owner(uint64_t address) const {
  if (base_ == nullptr || address < begin()) return PE_MAX_TASKLETS;
  const uint64_t block = (address - begin()) / PE_STACK_BLOCK_BYTES;
  return block < PE_MAX_TASKLETS ? static_cast<uint32_t>(block) : PE_MAX_TASKLETS;
}

bool Stacks::contains(uint64_t address, uint64_t bytes) const {
  const uint32_t tasklet = owner(address);
  return tasklet < PE_MAX_TASKLETS && address >= end(tasklet) - usable_bytes_[tasklet] &&
         bytes <= end(tasklet) - address;
}

}  // namespace dpuemu
