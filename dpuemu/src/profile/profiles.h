// The profiles of all programs of a process, and their file.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/profile.h"

namespace dpuemu {

class Profiles {
 public:
  /// Returns the profiles of this process; a child does not have those of its parent.
  static Profiles &instance();

  /// The profile of one run.
  struct Run {
    const PeReport &report;
    const std::vector<uint64_t> &counters;
    const std::unordered_map<uint32_t, PeProfile::Place> &places;
    double computing_cycles, engine_cycles;
  };
  void add(const Program &program, const Run &run);
  void name(const Program &program, const char *name, std::string_view file);
  void end_launch(const std::vector<const Pe *> &pes);
  /// Writes the file. After an error, its draft stays, which the reader reports.
  void write();

 private:
  struct OfProgram {
    std::string name, path;
    size_t hash = 0;  // of the program file
    uint64_t launches = 0, pes = 0, instructions = 0, dma_bytes = 0;
    // Sums over the launches: of the slowest PE, and of the mean PE.
    double slowest_cycles = 0, mean_cycles = 0;
    // Sums over all PEs; computing: over all tasklets.
    double cycles = 0, computing_cycles = 0, engine_cycles = 0;
    std::vector<uint64_t> counters;
    std::unordered_map<uint32_t, PeProfile::Place> places;  // by the offset in the text
  };
  static std::string as_json(const Program &program, const OfProgram &profile);
  void write_locked();

  std::mutex mutex_;
  std::map<const Program *, OfProgram> programs_;
  std::chrono::steady_clock::time_point next_write_ = std::chrono::steady_clock::now() + kPeriod;
  static constexpr std::chrono::seconds kPeriod{1};
};

}  // namespace dpuemu
