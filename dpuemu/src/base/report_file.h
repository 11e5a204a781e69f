// Writes launches to files, for dpuemu run and for programs that do not call dpuemu_get_report.
#pragma once

#include <dpuemu.h>

#include <cstddef>
#include <cstdint>

namespace dpuemu {

/// Appends `bytes` bytes to a file. A single write keeps the lines of several processes apart.
/// Returns false after an error, which is in errno.
bool append_line(const char *path, const char *line, size_t bytes);

/// Appends the report as a line of JSON, with the names of dpuemu_report_t, to the file in
/// DPUEMU_REPORT. The member `fault` of the line is the sentence about the first fault, or "". If
/// DPUEMU_REPORT is not set or the file cannot be written, does nothing.
void append_to_report_file(const dpuemu_report_t &report, const char *fault);

/// Append a line to the file in DPUEMU_RUNNING, which `dpuemu run` sets: at the start of a launch
/// its key and number of PEs, and at its end its key. note_start returns the key, which is unique
/// among all processes.
uint64_t note_start(uint64_t pes);
void note_end(uint64_t key);

}  // namespace dpuemu
