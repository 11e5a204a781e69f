#include "machine/checked_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "machine/pe.h"

namespace dpuemu {
namespace {

constexpr uint32_t to_granule(uint32_t value) { return (value + 7) & ~7u; }

const CheckedMemory::Object *find_in(const std::vector<CheckedMemory::Object> &objects,
                                     uint32_t address) {
  auto after = std::upper_bound(
      objects.begin(), objects.end(), address,
      [](uint32_t value, const CheckedMemory::Object &object) { return value < object.begin; });
  if (after == objects.begin()) return nullptr;
  --after;
  return address < after->end ? &*after : nullptr;
}

}  // namespace

const CheckedMemory::Object *CheckedMemory::object_at(uint32_t address) const {
  const Object *const block = find_in(blocks_, address);
  return block != nullptr ? block : find_in(variables_, address);
}

void CheckedMemory::load(const Program &program) {
  const dpu_symbol_t *const heap = program.find("__sys_heap_pointer_reset"),
                            *const mram_heap = program.find(DPU_MRAM_HEAP_POINTER_NAME);
  const uint32_t last_mram_heap =
      std::exchange(mram_heap_, mram_heap != nullptr ? mram_heap->address : 0);
  if (last_mram_heap != 0 && last_mram_heap != mram_heap_)
    move_heap(last_mram_heap - PE_MRAM_ORIGIN);
  const uint32_t heap_begin = heap != nullptr ? std::min(heap->address, PE_WRAM_BYTES + 0u) : 0;
  std::fill_n(wram, heap_begin, uint8_t{kDefined});
  reset_heap(heap_begin);
  variables_.clear();
  for (const auto &[name, symbol] : program.symbols())
    if (symbol.address < heap_begin && symbol.size != 0)
      variables_.push_back({symbol.address, symbol.address + symbol.size, 0});
  std::sort(variables_.begin(), variables_.end(), [](const Object &a, const Object &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  // Of several names of one place, the largest object remains.
  const auto is_same = [](const Object &a, const Object &b) { return a.begin == b.begin; };
  variables_.erase(std::unique(variables_.begin(), variables_.end(), is_same), variables_.end());
  for (size_t i = 0; i < variables_.size(); ++i) {
    const uint32_t next = i + 1 < variables_.size() ? variables_[i + 1].begin : heap_begin;
    variables_[i].end = std::max(variables_[i].end, std::min(to_granule(variables_[i].end), next));
  }
}

void CheckedMemory::allocate(uint32_t begin, uint32_t bytes, uint32_t place) {
  const auto end =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{begin} + bytes, PE_WRAM_BYTES));
  for (uint32_t i = begin; i < end; ++i)
    wram[i] = (wram[i] & (kDefined | kEarlier)) != 0 ? kEarlier : kNever;
  std::erase_if(blocks_,
                [&](const Object &block) { return block.begin < end && begin < block.end; });
  const Object block = {begin, std::min(to_granule(end), PE_WRAM_BYTES + 0u), place};
  blocks_.insert(std::upper_bound(blocks_.begin(), blocks_.end(), block,
                                  [](auto &a, auto &b) { return a.begin < b.begin; }),
                 block);
}

void CheckedMemory::reset_heap(uint32_t begin) {
  for (uint32_t i = begin; i < PE_WRAM_BYTES; ++i)
    wram[i] = static_cast<uint8_t>(kUnallocated |
                                   ((wram[i] & (kDefined | kEarlier)) != 0 ? kEarlier : kNever));
  blocks_.clear();
}

void CheckedMemory::note_host(const HostAccess &access) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_running_) {
    host_.push_back(access);
    has_host_.store(true, std::memory_order_release);
  } else if (access.is_write) {
    std::fill_n(wram + access.offset, access.bytes, uint8_t{kDefined});
  }
}

void CheckedMemory::set_running(bool is_running) {
  std::lock_guard<std::mutex> lock(mutex_);
  is_running_ = is_running;
}

std::vector<CheckedMemory::HostAccess> CheckedMemory::take_host() {
  std::lock_guard<std::mutex> lock(mutex_);
  has_host_.store(false, std::memory_order_release);
  return std::exchange(host_, {});
}

void CheckedMemory::define_mram(uint64_t offset, uint64_t bytes) {
  if (!is_mram_known_) return;
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t page_end = std::min(end, (offset / kPageBytes + 1) * kPageBytes);
    Page &page = mram_[static_cast<uint32_t>(offset / kPageBytes)];
    if (page_end - offset == kPageBytes) page.is_full = true;
    for (; offset < page_end && !page.is_full; ++offset)
      page.bits[offset % kPageBytes / 64] |= UINT64_C(1) << (offset % 64);
    offset = page_end;
  }
}

bool CheckedMemory::is_mram_defined(uint64_t offset) const {
  if (!is_mram_known_) return true;
  const auto page = mram_.find(static_cast<uint32_t>(offset / kPageBytes));
  return page != mram_.end() &&
         (page->second.is_full ||
          (page->second.bits[offset % kPageBytes / 64] >> (offset % 64) & 1) != 0);
}

void CheckedMemory::set_mram(uint64_t offset, bool is_defined) {
  Page &page = mram_[static_cast<uint32_t>(offset / kPageBytes)];
  uint64_t &word = page.bits[offset % kPageBytes / 64];
  const uint64_t bit = UINT64_C(1) << (offset % 64);
  if (page.is_full && !is_defined) {
    std::fill(std::begin(page.bits), std::end(page.bits), ~UINT64_C(0));
    page.is_full = false;
  }
  word = is_defined ? word | bit : word & ~bit;
}

void CheckedMemory::move_heap(uint32_t from) {
  for (auto &[number, page] : mram_) {
    const uint64_t begin = uint64_t{number} * kPageBytes;
    if (begin + kPageBytes <= from) continue;
    if (std::exchange(page.is_full, false))
      std::fill_n(page.bits, std::size(page.bits), ~UINT64_C(0));
    for (uint64_t at = std::max<uint64_t>(begin, from); at < begin + kPageBytes; ++at)
      page.bits[at % kPageBytes / 64] &= ~(UINT64_C(1) << (at % 64));
    page.has_moved = true;
  }
}

void CheckedMemory::copy_to_wram(uint64_t offset, uint32_t wram_offset, uint32_t bytes) {
  uint8_t *const states = wram + wram_offset;
  if (!is_mram_known_) return void(std::fill_n(states, bytes, uint8_t{kDefined}));
  for (uint32_t i = 0; i < bytes;) {
    const uint64_t at = offset + i;
    const auto part = static_cast<uint32_t>(
        std::min<uint64_t>(bytes - i, (at / kPageBytes + 1) * kPageBytes - at));
    const auto page = mram_.find(static_cast<uint32_t>(at / kPageBytes));
    if (page == mram_.end() || page->second.is_full) {
      std::fill_n(states + i, part, static_cast<uint8_t>(page == mram_.end() ? kCopied : kDefined));
    } else {
      for (uint32_t j = 0; j < part; ++j)
        states[i + j] = page->second.bits[(at + j) % kPageBytes / 64] >> ((at + j) % 64) & 1
                            ? kDefined
                        : page->second.has_moved ? kMoved
                                                 : kCopied;
    }
    i += part;
  }
}

void CheckedMemory::copy_to_mram(uint64_t offset, uint32_t wram_offset, uint32_t bytes) {
  if (!is_mram_known_) return;
  const uint8_t *const states = wram + wram_offset;
  if (std::all_of(states, states + bytes, [](uint8_t state) { return state == kDefined; }))
    return define_mram(offset, bytes);
  for (uint32_t i = 0; i < bytes; ++i) set_mram(offset + i, states[i] == kDefined);
}

CheckedMemory &checked_memory(Pe &pe) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (pe.checked == nullptr) {
    pe.checked = std::make_shared<CheckedMemory>();
    if (pe.was_accessed) pe.checked->define_all_mram();
  }
  return *pe.checked;
}

}  // namespace dpuemu
