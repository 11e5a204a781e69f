// The frequent calls, which PeRun::step() inlines: DMA and mutexes.
#pragma once

#include "pe/run.h"

namespace dpuemu {

constexpr uint32_t kMostDmaBytes = 2048;
constexpr uint32_t kWordMask = 7;

/// Carries out a DMA. Requires valid addresses and a valid size.
inline PeRun::After PeRun::move(uint32_t tasklet, uint32_t offset, uint8_t *wram, uint32_t bytes,
                                bool is_read) {
  PeReport &report = pe_->report;
  if (is_read) {
    direct_mram_.read(offset, bytes, wram);
    ++report.dma_reads;
    report.dma_read_bytes += bytes;
  } else {
    direct_mram_.write(offset, bytes, wram);
    ++report.dma_writes;
    report.dma_write_bytes += bytes;
  }
  moved_bytes_ += bytes;
  tasklets_[tasklet].state = State::kTransferring;
  clock_.transfer(tasklet, bytes);
  return After::kStay;
}

inline PeRun::After PeRun::transfer(uint32_t tasklet, uint32_t mram_address, uint32_t wram_address,
                                    uint32_t bytes, bool is_read) {
  // Most transfers are valid and reach WRAM.
  const uint32_t offset = mram_address & ~PE_MRAM_ORIGIN,
                 wram = wram_address - address_of(place_.wram);
  const bool is_plain = ((mram_address | wram_address | bytes) & kWordMask) == 0 &&
                        bytes - 1 < kMostDmaBytes && offset < PE_MRAM_BYTES &&
                        bytes <= PE_MRAM_BYTES - offset && wram < wram_bytes_ &&
                        bytes <= wram_bytes_ - wram;
  return is_plain ? move(tasklet, offset, place_.wram + wram, bytes, is_read)
                  : transfer_checked(tasklet, mram_address, wram_address, bytes, is_read);
}

inline PeRun::After PeRun::call_mram_read(uint32_t tasklet, const uint32_t *arguments) {
  return transfer(tasklet, arguments[0], arguments[1], arguments[2], true);
}

inline PeRun::After PeRun::call_mram_write(uint32_t tasklet, const uint32_t *arguments) {
  return transfer(tasklet, arguments[1], arguments[0], arguments[2], false);
}

inline PeRun::After PeRun::wait(uint32_t number, WaitKind kind, uint32_t key) {
  Tasklet &tasklet = tasklets_[number];
  tasklet.state = State::kWaiting;
  tasklet.wait_kind = kind;
  tasklet.wait_key = key;
  (first_waiter_ == PE_MAX_TASKLETS ? first_waiter_ : next_waiter_[last_waiter_]) = number;
  last_waiter_ = number;
  next_waiter_[number] = PE_MAX_TASKLETS;
  if (kind == WaitKind::kMutex) clock_.spin(number);
  return After::kStay;
}

inline uint32_t PeRun::first_waiter(WaitKind kind, uint32_t key) const {
  uint32_t waiter = first_waiter_;
  while (waiter != PE_MAX_TASKLETS &&
         (tasklets_[waiter].wait_kind != kind || tasklets_[waiter].wait_key != key))
    waiter = next_waiter_[waiter];
  return waiter;
}

inline void PeRun::wake(uint32_t number, uint64_t result) {
  clock_.stop_spinning(number);
  uint32_t previous = PE_MAX_TASKLETS;
  for (uint32_t i = first_waiter_; i != number; i = next_waiter_[i]) previous = i;
  (previous == PE_MAX_TASKLETS ? first_waiter_ : next_waiter_[previous]) = next_waiter_[number];
  if (last_waiter_ == number) last_waiter_ = previous;
  tasklets_[number].result = result;
  woken_ |= 1u << number;
  if (check_ != nullptr && check_->explorer() != nullptr) [[unlikely]]
    check_->explorer()->note_wake(number);
}

// The hardware has 256 mutexes and uses the low 8 bits of any address as a mutex number. The
// benchmark HST-L of PrIM depends on this mutex number.
inline uint8_t *PeRun::mutex_at(uint32_t tasklet, uint32_t address) {
  uint8_t *const first = place_.wram + PE_ATOMIC_ORIGIN;
  if (is_strict_ && address - address_of(first) >= PE_ATOMIC_BYTES) [[unlikely]] {
    refuse_mutex(tasklet);
    return nullptr;
  }
  return first + address % PE_ATOMIC_BYTES;
}

inline PeRun::After PeRun::call_mutex_lock(uint32_t tasklet, const uint32_t *arguments) {
  uint8_t *const mutex = mutex_at(tasklet, arguments[0]);
  if (mutex == nullptr) return After::kStay;
  if (*mutex != 0) return wait(tasklet, WaitKind::kMutex, arguments[0] % PE_ATOMIC_BYTES);
  *mutex = 1;
  mutex_holders_[arguments[0] % PE_ATOMIC_BYTES] = static_cast<uint8_t>(tasklet);
  return After::kGoOn;
}

inline PeRun::After PeRun::call_mutex_unlock(uint32_t tasklet, const uint32_t *arguments) {
  uint8_t *const mutex = mutex_at(tasklet, arguments[0]);
  if (mutex == nullptr) return After::kStay;
  // The first waiting tasklet takes the mutex, so the mutex stays locked.
  const uint32_t number = arguments[0] % PE_ATOMIC_BYTES;
  if (const uint32_t waiter = first_waiter(WaitKind::kMutex, number); waiter != PE_MAX_TASKLETS) {
    mutex_holders_[number] = static_cast<uint8_t>(waiter);
    wake(waiter);
  } else {
    *mutex = 0;
  }
  return After::kGoOn;
}

}  // namespace dpuemu
