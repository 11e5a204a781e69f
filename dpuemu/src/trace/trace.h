// The traces of `dpuemu trace`: events of the host in measured time, and of launches and PEs in
// modelled time. They are on if the variable DPUEMU_TRACE names a folder. Its file `settings` has
// numbers: the origin of times in ns of CLOCK_MONOTONIC, the most bytes of a process, how many PEs
// have details, and these PEs (none: PEs of the first loaded sets).
//
// Each process PID writes a file PID.totals, with sums (totals.h) for the summary, and three files
// whose lines are events of Chrome's trace format:
// dpuemu.PID.jsonl, in the form that all libraries may use (times of CLOCK_MONOTONIC); PID.ranks
// and PID.pes, whose times begin at the origin, and whose `pid` is kRanksPid, or kFirstPePid plus
// the number of a PE. A launch begins in modelled time when the host starts it, or when an earlier
// launch of its ranks ends in modelled time, if that is later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/rank.h"

namespace dpuemu {

/// Returns whether traces are on.
bool trace_is_on();

/// Returns the number by which traces name a PE of the machine.
constexpr uint32_t pe_number(uint32_t rank, uint32_t dpu_index) {
  return rank * kDpusPerRank + dpu_index;
}

/// Writes all events so far, if traces are on.
void write_trace();

/// Measures the time until the end of this object, as an event of the calling thread.
class HostSpan {
 public:
  /// name: of the event; no event if it is nullptr or traces are off.
  explicit HostSpan(const char *name, bool is_transfer = false);
  HostSpan(const HostSpan &) = delete;
  HostSpan &operator=(const HostSpan &) = delete;
  ~HostSpan();
  bool is_on() const { return name_ != nullptr; }
  /// Add an argument of the event.
  void add(const char *field, double value);
  void add(const char *field, const std::string &value);

 private:
  const char *name_;
  bool is_transfer_;
  uint64_t begin_ns_ = 0;
  std::string arguments_;
};

/// Chooses PEs for details, evenly among these and at most as many as the settings say. numbers: of
/// PEs that get a program.
void choose_traced_pes(const std::vector<uint32_t> &numbers);
/// Names the program in traces. path: of its file.
void name_traced_program(const Program &program, const std::string &path);

struct TracedRank {
  Rank *rank;
  uint64_t dpus;  // the launched PEs, as a bit set by dpu_index
};

/// A launch, from its start to the end of its PEs.
class TracedLaunch {
 public:
  /// caller_waits: whether the calling thread waits for the end; else there is one rank.
  TracedLaunch(std::vector<TracedRank> ranks, bool caller_waits);
  /// Returns whether the trace has details of a PE.
  bool shows(uint32_t number) const;
  /// Returns when the launch begins in modelled time, since the origin.
  double begin_ns() const { return begin_ns_; }
  double ns_per_cycle() const { return ns_per_cycle_; }
  /// Returns how many bytes the waits, DMA and regions of one PE may take.
  uint64_t bytes_per_pe() const { return bytes_per_pe_; }
  /// All PEs have ended, and their reports are complete.
  void end();

 private:
  void write(uint64_t host_end_ns);

  std::vector<TracedRank> ranks_;
  std::string name_;
  uint64_t number_;
  uint64_t thread_;         // of the host's events
  uint64_t host_begin_ns_;  // of CLOCK_MONOTONIC
  double begin_ns_, ns_per_cycle_;
  uint64_t bytes_per_pe_;
};

}  // namespace dpuemu
