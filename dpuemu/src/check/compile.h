// Compiles PE programs again, for `dpuemu check` or `dpuemu profile`.
#pragma once

#include <span>

#include "machine/program.h"

namespace dpuemu {

/// Returns the program to load instead of `program`, whose file has these bytes: if checks or
/// profiles are on and the program is compiled without them, a program of the same sources with
/// them. If its file does not record its command, or its sources no longer compile, prints so and
/// returns the same program. Without checks, prints that the modelled times of a program with
/// checks are wrong. name: of the file.
const Program *program_for_settings(const Program &program, std::span<const char> file,
                                    const char *name);

}  // namespace dpuemu
