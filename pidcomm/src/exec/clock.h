// A clock that measures elapsed time.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/call_events.h"

namespace pidcomm {

/// Nanoseconds of a clock that only goes forward.
inline int64_t clock_ns(
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now()) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
/// The same in seconds, without exact nanoseconds.
inline double clock_s() { return 1e-9 * static_cast<double>(clock_ns()); }

class Stopwatch {
 public:
  /// The time of the construction, of clock_ns.
  int64_t begin_ns() const { return clock_ns(start_); }
  /// Seconds since the construction. phase: the name of this phase of a call, a static text; null:
  /// the time is of no phase.
  double seconds(const char *phase = nullptr) const { return between(phase, start_, Clock::now()); }
  /// Seconds since the lap before, or since the construction. One read of the clock
  /// ends a lap and begins the next; a read takes as long as a step of a small call.
  double lap(const char *phase = nullptr) {
    const Clock::time_point before = lap_;
    lap_ = Clock::now();
    return between(phase, before, lap_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double between(const char *phase, Clock::time_point begin, Clock::time_point end) {
    const CallEvents *const events =
        phase == nullptr ? nullptr : call_events.load(std::memory_order_acquire);
    if (events != nullptr) events->phase(phase, clock_ns(begin), clock_ns(end));
    return std::chrono::duration<double>(end - begin).count();
  }
  Clock::time_point start_ = Clock::now(), lap_ = start_;
};

}  // namespace pidcomm
