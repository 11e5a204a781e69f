// The settings of `dpuemu check`, from environment variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpuemu {

struct CheckSettings {
  bool is_on = false;               // DPUEMU_CHECK is set, and not 0
  std::string file;                 // DPUEMU_CHECK_FILE: findings as lines of JSON
  std::vector<std::string> hidden;  // DPUEMU_CHECK_SUPPRESSIONS: lines of this file
  uint32_t schedules = 0;           // DPUEMU_CHECK_SCHEDULES: more schedules of each launch
  uint64_t seed = 1;                // DPUEMU_CHECK_SEED
  std::string pe;                   // DPUEMU_CHECK_PE: the PE with other schedules: `all`, a name
                                    // "rank.chip.bank", or empty: the first of each launch
  bool is_exhaustive = false;       // DPUEMU_CHECK_SCHEDULES is `all`
};

/// Returns the settings of the process; the first call reads them.
const CheckSettings &check_settings();

}  // namespace dpuemu
