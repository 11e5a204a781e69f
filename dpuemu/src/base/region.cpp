#include "base/region.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "base/address_map.h"
#include "base/low_memory.h"

namespace dpuemu {
namespace {

constexpr uint64_t kAlignmentBytes =
    UINT64_C(1) << 30;  // the region has the alignment of hardware, so that no huge page is split
constexpr uint64_t kLeftoverBytes = 32 << 20;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;

/// Returns a file of kLeftoverBytes leftover bytes, or -1. All regions show copies of this file, so
/// only written pages use more memory.
int leftover_file() {
  static int file = -1;  // guarded by the machine's mutex, which the callers of map() hold
  if (file >= 0) return file;
  const int created = memfd_create("dpuemu-leftovers", MFD_CLOEXEC);
  if (created < 0) return -1;
  void *const bytes = ftruncate(created, kLeftoverBytes) == 0
                          ? mmap(nullptr, kLeftoverBytes, kReadWrite, MAP_SHARED, created, 0)
                          : MAP_FAILED;
  if (bytes == MAP_FAILED) {
    close(created);
    return -1;
  }
  std::memset(bytes, kLeftoverByte, kLeftoverBytes);
  munmap(bytes, kLeftoverBytes);
  return file = created;
}

/// Replaces the pages at `begin` by unwritten pages. file: their contents, or -1 for zeros.
bool map_unwritten(uint8_t *begin, uint64_t bytes, int file) {
  const int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  return mmap(begin, bytes, kReadWrite, flags, file, 0) == begin;
}

}  // namespace

bool Region::map(bool has_leftovers) {
  if (base() == nullptr && !reserve()) return false;
  if (has_leftovers_ == has_leftovers) return true;
  has_leftovers_.reset();
  const int file = has_leftovers ? leftover_file() : -1;
  if (has_leftovers && file < 0) return false;
  const uint64_t step_bytes = has_leftovers ? kLeftoverBytes : kRegionBytes;
  for (uint64_t offset = 0; offset < kRegionBytes; offset += step_bytes)
    if (!map_unwritten(base() + offset, step_bytes, file)) return false;
  madvise(base(), kRegionBytes, MADV_DONTDUMP);
  has_leftovers_ = has_leftovers;
  return true;
}

bool Region::reserve() {
  const uint64_t reserved_bytes = kRegionBytes + kAlignmentBytes;
  void *reserved =
      mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  auto *begin = static_cast<uint8_t *>(reserved);
  const uint64_t head_bytes = -reinterpret_cast<uintptr_t>(begin) % kAlignmentBytes;
  if (head_bytes != 0) munmap(begin, head_bytes);
  munmap(begin + head_bytes + kRegionBytes, kAlignmentBytes - head_bytes);
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
  constexpr uint64_t kStepPages = UINT64_C(1) << 18, kIsPresent = UINT64_C(1) << 63,
                     kIsOfFile = UINT64_C(1) << 61;  // of the leftovers: an unwritten page
  const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::vector<uint64_t> entries(kStepPages);
  const uint64_t first = reinterpret_cast<uintptr_t>(base()) / kPageBytes;
  uint64_t pages = 0;
  for (uint64_t page = 0; page < kRegionBytes / kPageBytes; page += kStepPages) {
    const auto bytes = static_cast<ssize_t>(kStepPages * sizeof(uint64_t));
    const auto place = static_cast<off_t>((first + page) * sizeof(uint64_t));
    if (pread(map, entries.data(), static_cast<size_t>(bytes), place) != bytes) continue;
    for (const uint64_t entry : entries) pages += (entry & (kIsPresent | kIsOfFile)) == kIsPresent;
  }
  if (map >= 0) close(map);
  return pages * kPageBytes;
}

bool Region::protect(bool on) {
  if (base() == nullptr || is_protected() == on) return true;
  if (on) is_protected_.store(true, std::memory_order_release);
  if (mprotect(base(), kRegionBytes, on ? PROT_NONE : kReadWrite) != 0) return false;
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
