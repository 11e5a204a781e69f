// The options of a collective, and their defaults.
#pragma once

#include <cstdint>

#include "pidcomm/pidcomm.h"

namespace pidcomm {

inline constexpr int kMaxThreads = 1024;

struct Options {
  int technique, isa, threads, coherence;
  uint64_t scratch_offset;  // offset of the PE scratch from the heap base; 0: no scratch
  bool operator==(const Options &) const = default;
};

/// The abilities and defaults of the machine for which options are resolved.
class OptionRules {
 public:
  virtual ~OptionRules() = default;

  virtual int default_isa() const = 0;
  virtual int default_threads() const = 0;
  /// Whether the CPU's caches see the writes of PEs. If is_coherent() returns false, the default
  /// coherence policy flushes lines, and the policy `none` is an error.
  virtual bool is_coherent() const = 0;
  /// isa: a code of PIDCOMM_ISAS. Errors: ERR_OPTION if the machine lacks the instruction set.
  virtual void check_isa(int isa) const = 0;
};

/// Replaces every field that asks for a default by the default value of the machine. If `options`
/// is null, all fields get default values. Errors: ERR_OPTION (a code is unknown, the machine lacks
/// the instruction set, the number of threads is outside 0 .. kMaxThreads, or coherence is `none`
/// on a machine that is not coherent).
Options resolve(const pidcomm_options *options, const OptionRules &rules);

}  // namespace pidcomm
