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

/// Sorts variables, and rounds their ends up to 8. end: of their memory.
std::vector<CheckedMemory::Object> as_objects(std::vector<CheckedMemory::Object> variables,
                                              uint32_t end) {
  using Object = CheckedMemory::Object;
  std::sort(variables.begin(), variables.end(), [](const Object &a, const Object &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  // Of several names of one place, the largest object remains.
  const auto is_same = [](const Object &a, const Object &b) { return a.begin == b.begin; };
  variables.erase(std::unique(variables.begin(), variables.end(), is_same), variables.end());
  for (size_t i = 0; i < variables.size(); ++i) {
    const uint32_t next = i + 1 < variables.size() ? variables[i + 1].begin : end;
    variables[i].end = std::max(variables[i].end, std::min(to_granule(variables[i].end), next));
  }
  return variables;
}

/// Replaces the objects that overlap the new one.
void put(std::vector<CheckedMemory::Object> &objects, const CheckedMemory::Object &added) {
  std::erase_if(objects, [&](const CheckedMemory::Object &object) {
    return object.begin < added.end && added.begin < object.end;
  });
  objects.insert(std::upper_bound(objects.begin(), objects.end(), added,
                                  [](auto &a, auto &b) { return a.begin < b.begin; }),
                 added);
}

}  // namespace

const CheckedMemory::Object *CheckedMemory::object_at(uint32_t address) const {
  const Object *const part = find_in(parts_, address);
  const Object *const block = part != nullptr ? part : find_in(blocks_, address);
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
  const uint32_t mram_end = mram_heap_ != 0 ? mram_heap_ - PE_MRAM_ORIGIN : 0;
  std::vector<Object> in_wram, in_mram;
  for (const auto &[name, symbol] : program.symbols()) {
    if (symbol.size == 0) continue;
    if (symbol.address < heap_begin)
      in_wram.push_back({symbol.address, symbol.address + symbol.size, 0});
    const uint32_t offset = symbol.address - PE_MRAM_ORIGIN;
    if (offset < mram_end) in_mram.push_back({offset, offset + symbol.size, 0});
  }
  variables_ = as_objects(std::move(in_wram), heap_begin);
  mram_variables_ = as_objects(std::move(in_mram), mram_end);
}

const CheckedMemory::Object *CheckedMemory::mram_variable_at(uint32_t offset) const {
  return find_in(mram_variables_, offset);
}

void CheckedMemory::allocate(uint32_t begin, uint32_t bytes, uint32_t place) {
  const auto end =
      static_cast<uint32_t>(std::min<uint64_t>(uint64_t{begin} + bytes, PE_WRAM_BYTES));
  for (uint32_t i = begin; i < end; ++i)
    wram[i] = (wram[i] & (kDefined | kEarlier)) != 0 ? kEarlier : kNever;
  put(blocks_, {begin, std::min(to_granule(end), PE_WRAM_BYTES + 0u), place});
}

void CheckedMemory::set_part(uint32_t begin, uint32_t bytes, uint32_t place, bool is_taken) {
  std::fill_n(wram + begin, bytes, static_cast<uint8_t>(is_taken ? kNever : kFreed));
  if (is_taken) return put(parts_, {begin, begin + bytes, place});
  std::erase_if(parts_, [&](Object &part) {
    if (part.begin >= begin) return part.begin < begin + bytes;
    part.end = std::min(part.end, begin);  // the block has become smaller
    return false;
  });
}

void CheckedMemory::reset_heap(uint32_t begin) {
  for (uint32_t i = begin; i < PE_WRAM_BYTES; ++i)
    wram[i] = static_cast<uint8_t>(kUnallocated |
                                   ((wram[i] & (kDefined | kEarlier)) != 0 ? kEarlier : kNever));
  blocks_.clear();
  parts_.clear();
}

void CheckedMemory::define_host_locked(const HostAccess &access) {
  if (access.is_write) std::fill_n(wram + access.offset, access.bytes, uint8_t{kDefined});
}

void CheckedMemory::note_host(const HostAccess &access, bool is_queued) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!is_running_ && (is_queued || launches_ == 0)) return define_host_locked(access);
  host_.push_back(access);
  has_host_.store(true, std::memory_order_release);
}

void CheckedMemory::queue_launch() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++launches_;
}

void CheckedMemory::begin_launch() {
  std::lock_guard<std::mutex> lock(mutex_);
  is_running_ = true;
}

void CheckedMemory::end_launch(bool has_begun) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (has_begun) is_running_ = false;
  if (--launches_ != 0) return;  // the rest is beside the next launch
  has_host_.store(false, std::memory_order_release);
  for (const HostAccess &access : std::exchange(host_, {})) define_host_locked(access);
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

bool CheckedMemory::has_value(uint64_t offset) const {
  const auto page = mram_.find(static_cast<uint32_t>(offset / kPageBytes));
  return page != mram_.end() &&
         (page->second.is_full ||
          (page->second.bits[offset % kPageBytes / 64] >> (offset % 64) & 1) != 0);
}

std::vector<CheckedMemory::Sent> CheckedMemory::take_sent(uint64_t offset, uint64_t bytes) {
  std::vector<Sent> taken;
  if (!is_mram_known_) return taken;
  std::erase_if(sent_, [&](const auto &entry) {
    const Sent &sent = entry.second;
    const uint64_t begin = std::max<uint64_t>(offset, sent.offset),
                   end = std::min<uint64_t>(offset + bytes, sent.offset + sent.bytes);
    if (begin >= end) return false;
    bool is_any = false;
    for (uint64_t i = begin; i < end; ++i) is_any = is_any || has_value(i);
    if (!is_any) taken.push_back(sent);
    return true;
  });
  return taken;
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
