#include "pe/snapshot.h"

#include <algorithm>

#include "base/low_memory.h"

namespace dpuemu {
namespace {

/// The mutexes, and after them the lock of the allocators.
constexpr uint32_t kLockBytes = PE_ATOMIC_BYTES + 1;

uint64_t hash_of(uint64_t hash, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001B3;
  return hash;
}

}  // namespace

PeSnapshot::PeSnapshot(Pe &pe, const PePlace &place, const MramPort &port)
    : pe_(pe), place_(place), port_(port) {
  save(before_);
}

void PeSnapshot::save(State &state) {
  state.wram.assign(place_.wram, place_.wram + PE_WRAM_BYTES);
  state.locks.assign(place_.wram + PE_ATOMIC_ORIGIN, place_.wram + PE_ATOMIC_ORIGIN + kLockBytes);
  state.log = pe_.log;
  state.report = pe_.report;
  state.fault = pe_.fault;
}

void PeSnapshot::before_write(uint64_t offset, uint64_t bytes) {
  for (uint64_t page = offset / kPageBytes; page * kPageBytes < offset + bytes; ++page) {
    const auto [entry, is_new] = before_.mram.try_emplace(page);
    if (!is_new) continue;
    entry->second.resize(kPageBytes);
    port_.read(page * kPageBytes, kPageBytes, entry->second.data());
  }
}

void PeSnapshot::put(const State &state) {
  std::copy(state.wram.begin(), state.wram.end(), place_.wram);
  std::copy(state.locks.begin(), state.locks.end(), place_.wram + PE_ATOMIC_ORIGIN);
  for (const auto &[page, bytes] : state.mram)
    port_.write(page * kPageBytes, kPageBytes, bytes.data());
  pe_.log = state.log;
  pe_.report = state.report;
  pe_.fault = state.fault;
}

void PeSnapshot::restore() { put(before_); }

void PeSnapshot::save_result() {
  save(after_);
  for (const auto &[page, bytes] : before_.mram) {
    auto &saved = after_.mram[page];
    saved.resize(kPageBytes);
    port_.read(page * kPageBytes, kPageBytes, saved.data());
  }
}

void PeSnapshot::restore_result() {
  restore();
  put(after_);
}

uint64_t PeSnapshot::result() const {
  uint64_t sum = static_cast<uint64_t>(pe_.fault.kind);
  const auto [begin, end] = pe_.program->host_variables();
  sum = hash_of(sum, place_.wram + begin, end - begin);
  for (const auto &[page, old] : before_.mram) {
    std::vector<uint8_t> bytes(kPageBytes);
    port_.read(page * kPageBytes, kPageBytes, bytes.data());
    if (bytes != old) sum += hash_of(page, bytes.data(), bytes.size());  // in any order
  }
  return sum;
}

}  // namespace dpuemu
