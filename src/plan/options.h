// The options of a collective, and their defaults.
#pragma once

#include <cstdint>

#include "pidcomm/pidcomm.h"

namespace pidcomm {

inline constexpr int kMaxThreads = 1024;

struct Options {
  int technique, isa, threads, coherence;
  uint64_t scratch_offset;  // from the heap base; 0: none
  bool operator==(const Options &) const = default;
};

/// The abilities and defaults of the machine that options are for.
class OptionRules {
 public:
  virtual ~OptionRules() = default;

  virtual int default_isa() const = 0;
  virtual int default_threads() const = 0;
  /// Whether the CPU's caches see the writes of PEs. If not, lines are flushed by default, and `none` is an error.
  virtual bool is_coherent() const = 0;
  /// isa: a code of PIDCOMM_ISAS. Errors: ERR_OPTION if the machine lacks it.
  virtual void check_isa(int isa) const = 0;
};

/// Replaces every default by its value; null: all fields are defaults.
/// Errors: ERR_OPTION (unknown, an instruction set that the machine lacks, threads outside 0 .. kMaxThreads, coherence `none` on a machine
/// that is not coherent).
Options resolve(const pidcomm_options *options, const OptionRules &rules);

}  // namespace pidcomm
