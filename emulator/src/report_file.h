// Writes launches to files, for dpuemu run and for programs that do not call dpuemu_get_report.
#pragma once

#include <dpuemu.h>

namespace dpuemu {

/// Appends the report as a line of JSON, with the names of dpuemu_report_t, to the file in DPUEMU_REPORT. The member `fault` of the line is
/// the sentence about the first fault, or "". If DPUEMU_REPORT is not set or the file cannot be written, does nothing.
void append_to_report_file(const dpuemu_report_t &report, const char *fault);

/// Appends the number of PEs of a launch that starts as a line to the file in DPUEMU_STARTED, which dpuemu run sets.
void append_to_start_file(uint64_t pes);

}  // namespace dpuemu
