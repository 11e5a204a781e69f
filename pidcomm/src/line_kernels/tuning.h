// The pace of the passes: how many words, lines and streams a pass visits before it goes on, and
// how far it prefetches; see pidcomm/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "line_kernels/kernels.h"
#include "pidcomm/tuning.h"

namespace pidcomm {

/// A pass whose values may change, with the range of its step_words. A reduction that loads from
/// several ranks has other values, with the name of the pass and "_over_ranks".
struct TunedPass {
  std::size_t index;  // of the values
  const char *name;
  uint32_t least_step_words, most_step_words;
};
const std::vector<TunedPass> &tuned_passes();

/// Returns the tuned pass with a name. Errors: ERR_ARGUMENT.
const TunedPass &tuned_pass(const std::string &name);

/// Returns the values of a pass. over_ranks: for a sweep that loads from several ranks.
PassTuning tuning_of(Pass pass, bool over_ranks = false);

/// Returns the values of a tuned pass, and sets them. Errors: ERR_ARGUMENT (a value is outside its
/// range).
PassTuning tuning_of(const TunedPass &pass);
void set_tuning(const TunedPass &pass, const pidcomm_tuning &tuning);

/// See pidcomm/tuning.h.
const std::string &tuning_source();
const std::string &tuning_path();
const std::string &tuning_cpu();

}  // namespace pidcomm
