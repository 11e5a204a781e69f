// Writes the calls and phases of the process as events of Chrome's trace format.
#pragma once

#include <string>

namespace pidcomm {

/// From now on, appends a line of JSON to FOLDER/pidcomm.PID.jsonl for each call and phase; see
/// docs/recorder.md. If the file cannot be written, the process writes no more events. Throws
/// std::bad_alloc.
void trace_events_to(const std::string &folder);

}  // namespace pidcomm
