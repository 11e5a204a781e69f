// Writes launch reports to a file, for programs that do not call dpuemu_get_report.
#pragma once

#include <dpuemu.h>

namespace dpuemu {

/// Appends the report as a line of JSON, with the names of dpuemu_report_t, to the file in DPUEMU_REPORT. The member `fault` of the line is
/// the sentence about the first fault (at most 1023 bytes), or "". If DPUEMU_REPORT is not set or the file cannot be written, does nothing.
void append_to_report_file(const dpuemu_report_t &report, const char *fault);

}  // namespace dpuemu
