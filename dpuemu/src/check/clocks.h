// Vector clocks of the tasklets of one PE, and epochs: one time of one tasklet (FastTrack, Flanagan
// and Freund 2009). The host is one more thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/calls.h"

namespace dpuemu {

constexpr uint32_t kHostThread = PE_MAX_TASKLETS, kClockThreads = PE_MAX_TASKLETS + 1;

/// A time of a thread: thread << kTimeBits | time. 0: no time.
using Epoch = uint32_t;
constexpr uint32_t kTimeBits = 27;
constexpr Epoch kTimeMask = (1u << kTimeBits) - 1;
constexpr Epoch epoch_of(uint32_t thread, uint32_t time) { return thread << kTimeBits | time; }
constexpr uint32_t thread_of(Epoch epoch) { return epoch >> kTimeBits; }

/// For each thread, the last of its times that happened before now.
struct alignas(64) VectorClock {
  Epoch times[1u << (32 - kTimeBits)] = {};

  bool has(Epoch epoch) const { return epoch <= times[thread_of(epoch)]; }
  void join(const VectorClock &other) {
    for (uint32_t i = 0; i < std::size(times); ++i) times[i] = std::max(times[i], other.times[i]);
  }
};

}  // namespace dpuemu
