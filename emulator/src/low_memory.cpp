#include "low_memory.h"

#include <sys/mman.h>

#include <mutex>

#include "pe/calls.h"

namespace dpuemu {
namespace {

// MRAM addresses (0x08000000 to 0x0BFFFFFF) stay unmapped, so that a PE program that takes one for a WRAM address is noticed.
constexpr uint64_t kFirst = 0x10000000, kEnd = 0x7FF00000, kStep = 0x1000000;
static_assert(kFirst >= PE_MRAM_ORIGIN + PE_MRAM_BYTES);

}  // namespace

uint8_t *reserve_low(uint64_t bytes) {
  static std::mutex mutex;
  static uint64_t cursor = kFirst;
  std::lock_guard<std::mutex> lock(mutex);
  for (; cursor + bytes <= kEnd; cursor += kStep) {
    void *const wanted = reinterpret_cast<void *>(cursor);
    void *const got = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) {
      cursor += (bytes + 0xFFFF) & ~UINT64_C(0xFFFF);
      return static_cast<uint8_t *>(got);
    }
    if (got != MAP_FAILED) munmap(got, bytes);  // an old kernel that takes the address for a hint
  }
  return nullptr;
}

}  // namespace dpuemu
