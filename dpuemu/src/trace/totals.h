// The sums of a process, which count launches and transfers that the limit drops.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>

#include "machine/rank.h"

namespace dpuemu {

/// The length of a union of spans, in ns. It is exact if at most kMostSpans gaps follow the begin
/// of a span when add() gets it; otherwise it may be too short.
class SpanUnion {
 public:
  static constexpr size_t kMostSpans = 4096;

  void add(uint64_t begin, uint64_t end);
  uint64_t length() const { return length_; }

 private:
  std::map<uint64_t, uint64_t> spans_;  // from begin to end; they do not touch
  uint64_t closed_until_ = 0;  // earlier times have no entry, and new spans do not add them
  uint64_t length_ = 0;
};

struct Totals {
  uint64_t launches = 0;  // of ranks: a launch on two ranks counts twice
  uint64_t transfers = 0;
  uint64_t dropped_events = 0;
  SpanUnion launched, moved;  // measured times
  SpanUnion modelled;         // times from the start of a launch to the end of its slowest PE
  std::array<double, DPUEMU_MAX_RANKS * kDpusPerRank> pe_ns = {};  // modelled, by number of the PE
  std::bitset<DPUEMU_MAX_RANKS * kDpusPerRank> has_launched;       // the PEs

  /// Returns an object of JSON, with times in us; `pe_us` has the launched PEs only.
  std::string json() const;
};

}  // namespace dpuemu
