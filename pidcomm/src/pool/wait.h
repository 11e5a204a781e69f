// How a process of a pool reads the lines of others, waits for them, and keeps its first error.
// Only for the files that define members of Pool.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>

#include "base/error.h"
#include "exec/clock.h"
#include "pool/layout.h"

namespace pidcomm {

inline constexpr double kCheckSeconds =
    0.05;  // between checks of whether the other processes are alive
inline constexpr long kShortestSleepNs = 20'000, kLongestSleepNs = 500'000;

template <class T>
T Pool::load(const std::atomic<T> &word) const {
  flush(&word, sizeof word);
  return word.load(std::memory_order_seq_cst);
}

template <class T>
void Pool::store(std::atomic<T> &word, T value) const {
  word.store(value, std::memory_order_seq_cst);
  flush(&word, sizeof word);
}

template <class IsDone, class Check, class Missing>
void Pool::wait(const Counter *counter, double timeout_s, const IsDone &is_done, const Check &check,
                const Missing &missing) const {
  for (int spin = 0; spin <= spins_; ++spin) {
    if (is_done()) return;
    __builtin_ia32_pause();
  }
  const bool has_futex = counter != nullptr && coherence() != PIDCOMM_COHERENCE_HARDWARE;
  const double begin = clock_s();
  double checked = begin;
  for (long sleep_ns = kShortestSleepNs;; sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    const uint32_t seen = has_futex ? counter->value.load(std::memory_order_seq_cst) : 0;
    if (is_done()) return;
    if (has_futex) {
      auto &own = const_cast<Counter &>(*counter);
      const timespec limit{0, static_cast<long>(1e9 * kCheckSeconds)};
      own.sleepers.fetch_add(1, std::memory_order_seq_cst);
      syscall(SYS_futex, &own.value, FUTEX_WAIT, seen, &limit, nullptr, 0);
      own.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    } else {
      const timespec pause{0, sleep_ns};
      nanosleep(&pause, nullptr);
    }
    const double time = clock_s();
    if (time - checked < kCheckSeconds) continue;
    checked = time;
    try {
      check();
    } catch (const Error &) {
      if (is_done())
        return;  // the other process has ended after the event for which this process waits
      throw;
    }
    if (time - begin > timeout_s && !is_done())
      fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": ", name_of(number_), " has waited ", timeout_s,
           " s for ", missing());
  }
}

template <class Body>
void Pool::guarded(const Body &body) {
  if (!broken_.empty()) fail(PIDCOMM_ERR_DEVICE, broken_);
  try {
    body();
  } catch (const Error &error) {
    broken_ = error.what();
    if (number_ == seat_of(0)) refuse(error.status(), broken_);
    throw;
  }
}

}  // namespace pidcomm
