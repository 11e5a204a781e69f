// A clock that measures elapsed time in seconds.
#pragma once

#include <chrono>

#include "base/call_events.h"

namespace pidcomm {

/// Seconds of a clock that only goes forward.
inline double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
 public:
  /// The time of the construction, of clock_s.
  double begin_s() const {
    return std::chrono::duration<double>(start_.time_since_epoch()).count();
  }
  /// Seconds since the construction.
  double seconds() const { return between(start_, Clock::now()); }
  /// Seconds since the lap before, or since the construction. One read of the clock
  /// ends a lap and begins the next; a read takes as long as a step of a small call.
  double lap() {
    const Clock::time_point before = lap_;
    lap_ = Clock::now();
    return between(before, lap_);
  }

  /// The same, for a phase of a call. The name is a static text.
  double seconds(const char *phase) const {
    const Clock::time_point now = Clock::now();
    add_phase(phase, start_, now);
    return between(start_, now);
  }
  double lap(const char *phase) {
    const Clock::time_point before = lap_;
    const double seconds = lap();
    add_phase(phase, before, lap_);
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static void add_phase(const char *phase, Clock::time_point begin, Clock::time_point end) {
    const CallEvents *const events = call_events.load(std::memory_order_acquire);
    if (events == nullptr) return;
    const auto ns = [](Clock::time_point time) {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    };
    events->phase(phase, ns(begin), ns(end));
  }
  static double between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }
  Clock::time_point start_ = Clock::now(), lap_ = start_;
};

}  // namespace pidcomm
