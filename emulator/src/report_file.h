// Writes launch reports to a file, for programs that do not call dpuemu_get_report.
#pragma once

#include <dpuemu.h>

namespace dpuemu {

/// Appends the report as a line of JSON, with the names of dpuemu_report_t, to the file in DPUEMU_REPORT. If the variable is unset or the
/// file cannot be written, it does nothing.
void append_to_report_file(const dpuemu_report_t &report);

}  // namespace dpuemu
