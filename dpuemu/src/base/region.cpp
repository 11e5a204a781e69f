#include "base/region.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "base/address_map.h"

namespace dpuemu {
namespace {

constexpr uint64_t kAlignmentBytes =
    UINT64_C(1) << 30;  // the region has the alignment of hardware, so that no huge page is split
constexpr uint64_t kPageBytes = 4096;

}  // namespace

bool Region::map() {
  if (base() != nullptr) return true;
  const uint64_t reserved_bytes = kRegionBytes + kAlignmentBytes;
  void *reserved = mmap(nullptr, reserved_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  auto *begin = static_cast<uint8_t *>(reserved);
  const uint64_t head_bytes = -reinterpret_cast<uintptr_t>(begin) % kAlignmentBytes;
  if (head_bytes != 0) munmap(begin, head_bytes);
  munmap(begin + head_bytes + kRegionBytes, kAlignmentBytes - head_bytes);
  madvise(begin + head_bytes, kRegionBytes, MADV_DONTDUMP);
  base_.store(begin + head_bytes, std::memory_order_release);
  return true;
}

void Region::advise_huge_pages(bool on) {
  madvise(base(), kRegionBytes, on ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void Region::drop() {
  if (base() != nullptr) madvise(base(), kRegionBytes, MADV_DONTNEED);
}

uint64_t Region::resident_bytes() const {
  if (base() == nullptr) return 0;
  constexpr uint64_t kStepBytes = UINT64_C(1) << 30;
  std::vector<unsigned char> is_resident(kStepBytes / kPageBytes);
  uint64_t pages = 0;
  for (uint64_t offset = 0; offset < kRegionBytes; offset += kStepBytes) {
    if (mincore(base() + offset, kStepBytes, is_resident.data()) != 0) continue;
    for (unsigned char page : is_resident) pages += page & 1;
  }
  return pages * kPageBytes;
}

bool Region::protect(bool on) {
  if (base() == nullptr || is_protected() == on) return true;
  if (on) is_protected_.store(true, std::memory_order_release);
  if (mprotect(base(), kRegionBytes, on ? PROT_NONE : PROT_READ | PROT_WRITE) != 0) return false;
  if (!on) is_protected_.store(false, std::memory_order_release);
  return true;
}

namespace {

const Region *const *strict_regions = nullptr;
uint32_t strict_region_count = 0;
struct sigaction previous_action;

// From here on, only async-signal-safe calls.
void say(const char *text, size_t bytes) {
  if (write(STDERR_FILENO, text, bytes) < 0) return;  // ignored, because the process is ending
}

void say(const char *text) { say(text, strlen(text)); }

void say_number(uint64_t value) {
  char digits[20];
  size_t first = sizeof digits;
  do {
    digits[--first] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  say(digits + first, sizeof digits - first);
}

void on_segv(int, siginfo_t *info, void *) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (uint32_t rank = 0; rank < strict_region_count; ++rank) {
    const auto base = reinterpret_cast<uintptr_t>(strict_regions[rank]->base());
    if (base == 0 || address < base || address - base >= kRegionBytes ||
        !strict_regions[rank]->is_protected())
      continue;
    say("dpuemu: the host touched the MRAM of rank ");
    say_number(rank);
    say(" (region offset ");
    say_number(address - base);
    say("), which its PEs own: acquire the rank first\n");
    struct sigaction end_process = {};
    end_process.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &end_process, nullptr);
    return;  // the access repeats and ends the process
  }
  sigaction(SIGSEGV, &previous_action, nullptr);
}

}  // namespace

void install_strict_handler(const Region *const *regions, uint32_t count) {
  static std::once_flag once;
  std::call_once(once, [=] {
    strict_regions = regions;
    strict_region_count = count;
    struct sigaction action = {};
    action.sa_sigaction = on_segv;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_action);
  });
}

}  // namespace dpuemu
