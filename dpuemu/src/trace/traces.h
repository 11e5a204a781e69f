// The traces of a process, and their files.
#pragma once

#include <dpuemu.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "machine/rank.h"
#include "trace/totals.h"

namespace dpuemu {

/// The fields `pid` of events; python/dpuemu/trace.py has the same numbers. They differ from the
/// rows, because viewers take a row with the number of its process for the main thread.
constexpr uint64_t kRanksPid = 90, kFirstPePid = 100;
/// The field `tid`: rows of asynchronous launches of a rank, after the threads of the host; the row
/// of a PE's DMA engine; a tasklet t has the row t + 1.
constexpr uint64_t kRankThread = 10000000, kEngineRow = PE_MAX_TASKLETS + 1;

/// Returns the time of CLOCK_MONOTONIC.
uint64_t host_ns();

/// Appends a time in us, of whole ns: so the ends of nested events are nested too.
void append_us(std::string &json, uint64_t ns);
/// Append an event without its closing brace, for arguments. scope: 't' (the row) or 'p' (the
/// process).
void append_instant(std::string &json, uint64_t pid, uint64_t row, const char *category,
                    uint64_t ns, const std::string &quoted_name, char scope);
void append_span(std::string &json, uint64_t pid, uint64_t row, const char *category,
                 uint64_t begin_ns, uint64_t end_ns, const std::string &quoted_name);

class Traces {
 public:
  /// Returns the traces of this process; a child does not have those of its parent.
  static Traces &instance();
  Traces();

  void choose(const std::vector<uint32_t> &numbers);
  bool shows(uint32_t number) const { return shown_[number].load(std::memory_order_relaxed); }
  void name(const Program &program, const std::string &path);
  std::string name_of(const Program &program);
  /// Returns the function and line at an address of the program file, quoted.
  std::string place_of(const Program &program, uint32_t address);

  uint64_t origin_ns() const { return origin_ns_; }
  /// Returns the number of a new launch.
  uint64_t count_launch() { return ++launches_; }
  /// Returns how many bytes of details a new launch may add.
  uint64_t room();
  /// Returns when the earlier launches of a rank end in modelled time, and sets this time.
  double rank_free_ns(uint32_t rank);
  void set_rank_free(uint32_t rank, double ns);

  /// Calls change(totals); no other thread uses them meanwhile.
  template <class Change>
  void count(Change change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change(totals_);
  }

  /// Add lines. From the limit on, they drop lines and count them; host and rank lines say so.
  void add_host(const std::string &lines);
  void add_rank(uint32_t rank, const std::string &lines);
  /// rows: bit set of the rows. Returns whether the file has the lines.
  bool add_pe(uint32_t number, uint64_t rows, const std::string &lines);
  /// Writes all lines and the totals to the files.
  void write();
  /// The same if the last write() was a second ago, so that a process that ends by a signal or by
  /// _exit() leaves most events.
  void write_now_and_then();

 private:
  /// A file that gets its lines in large blocks.
  struct Output {
    std::string path, lines;
    uint64_t bytes = 0;    // in the file and in `lines`
    bool is_full = false;  // lines were dropped
  };
  void add_locked(Output &output, const std::string &lines);
  /// The same for lines that may take a part of the limit.
  void add_limited_locked(Output &output, const std::string &lines, uint64_t pid, uint64_t row,
                          uint64_t ns);
  static void write_locked(Output &output);
  void write_totals_locked() const;

  std::mutex mutex_;  // guards the members below, except for atomics and settings
  Output host_, ranks_, pes_;
  Totals totals_;
  std::map<const Program *, std::string> names_;
  std::map<std::pair<const Program *, uint32_t>, std::string> places_;
  std::map<uint64_t, uint64_t> rows_;  // by pid: those that have a name
  std::array<double, DPUEMU_MAX_RANKS> rank_free_ns_ = {};
  std::array<std::atomic<bool>, DPUEMU_MAX_RANKS * kDpusPerRank> shown_ = {};
  std::atomic<uint64_t> launches_{0};
  std::string totals_path_;
  uint64_t next_write_ns_ = 0;
  uint64_t origin_ns_ = 0, limit_bytes_ = 0;
  uint32_t sample_ = 0, sampled_ = 0;  // PEs to choose, and chosen ones
};

}  // namespace dpuemu
