// The options of a call that does not set them, on the machine that runs the library.
#pragma once

#include "plan/options.h"

namespace pidcomm {

/// Returns the options with the defaults of this machine. Errors: ERR_OPTION.
Options resolve(const pidcomm_options *options);

/// The threads of a call without the option `threads`, and whether OMP_NUM_THREADS is ignored
/// because it is not valid.
struct DefaultThreads {
  int threads;
  bool is_variable_ignored;
};
DefaultThreads default_threads();

}  // namespace pidcomm
