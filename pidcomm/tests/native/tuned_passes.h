// The tuned passes, and values of tuning.h that last until the end of a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pidcomm/tuning.h"

namespace tuned_passes {

struct Pass {
  const char *name = nullptr;
  pidcomm_tuning values PIDCOMM_TUNING_INITIALIZER;
  std::uint32_t least_step_words = 0, most_step_words = 0;
};

inline std::vector<Pass> passes() {
  std::vector<Pass> all;
  for (Pass pass; pidcomm_tuned_pass(all.size(), &pass.name, &pass.values, &pass.least_step_words,
                                     &pass.most_step_words) == PIDCOMM_OK;)
    all.push_back(pass);
  return all;
}

/// Sets the values of all passes again at the end of a test.
struct Restored {
  const std::vector<Pass> before = passes();
  ~Restored() {
    for (const Pass &pass : before) pidcomm_tune(pass.name, &pass.values);
  }
};

/// Makes reductions load with (1) or without (0) prefetches, with the same steps and distance on
/// all CPUs.
struct ReductionsPrefetch : Restored {
  explicit ReductionsPrefetch(std::uint32_t prefetches) {
    for (Pass pass : before) {
      if (std::string(pass.name).find("reduce") != 0) continue;
      pass.values.prefetches = prefetches;
      pass.values.ahead = 128;
      pass.values.step_words = pass.most_step_words;
      pidcomm_tune(pass.name, &pass.values);
    }
  }
};

}  // namespace tuned_passes
