// The launch reports of a program that does not ask for them itself.
#pragma once

#include <dpuemu.h>

namespace dpuemu {

/// Appends the report as a line of JSON, with the names of dpuemu_report_t, to the file that DPUEMU_REPORT names. Nothing if it is not set
/// or cannot be written.
void append_to_report_file(const dpuemu_report_t &report);

}  // namespace dpuemu
