#include "base/low_memory.h"

#include <sys/mman.h>

#include <mutex>

#include "runtime/calls.h"

namespace dpuemu {
namespace {

// MRAM addresses (0 to 0x03FFFFFF, also 0x08000000 to 0x0BFFFFFF) are not used, so that a PE
// program that uses an MRAM address as a WRAM address usually faults.
constexpr uint64_t kFirst = 0x10000000, kEnd = 0x7FF00000, kStep = 0x80000;
static_assert(kFirst >= PE_MRAM_ORIGIN + PE_MRAM_BYTES);

bool reserve_at(uint64_t address, uint64_t bytes) {
  void *const wanted = reinterpret_cast<void *>(address);
  void *const got = mmap(wanted, bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return true;
  if (got != MAP_FAILED)
    munmap(got, bytes);  // an old Linux kernel treats the address only as a hint
  return false;
}

}  // namespace

uint8_t *reserve_low(uint64_t bytes) {
  static std::mutex mutex;
  static uint64_t cursor =
      kFirst;  // the end of the last reservation; earlier addresses are rarely free
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t begin = cursor;
  for (int round = 0; round < 2; ++round) {
    const uint64_t end = round == 0 ? kEnd : begin;
    for (uint64_t address = round == 0 ? begin : kFirst; address + bytes <= end; address += kStep) {
      if (!reserve_at(address, bytes)) continue;
      cursor = address + bytes;
      return reinterpret_cast<uint8_t *>(address);
    }
  }
  return nullptr;
}

void release_low(uint8_t *begin, uint64_t bytes) { munmap(begin, bytes); }

}  // namespace dpuemu
