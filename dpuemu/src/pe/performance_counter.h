// A performance counter of a PE: of cycles, or of instructions.
#pragma once

#include <cstdint>

namespace dpuemu {

class PerformanceCounter {
 public:
  /// The modes of perfcounter_config, without those of two counters.
  enum Mode : uint32_t { kSame = 0, kCycles = 1, kInstructions = 2, kNothing = 3 };

  bool runs() const { return runs_; }
  /// now: the clock of the counter, in cycles or instructions. As on hardware, the value lacks the
  /// low four bits.
  uint64_t value(double now) const { return static_cast<uint64_t>(counted(now)) & ~UINT64_C(15); }
  void set(double now, bool will_run, bool resets) {
    count_ = resets ? 0 : counted(now);
    start_ = now;
    runs_ = will_run;
  }

 private:
  double counted(double now) const { return count_ + (runs_ ? now - start_ : 0); }

  double count_ = 0, start_ = 0;  // the events before the counter started, and `now` at this moment
  bool runs_ = false;
};

}  // namespace dpuemu
