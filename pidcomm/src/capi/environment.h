// Settings of the recorder and of traces in environment variables.
#pragma once

namespace pidcomm {

/// Applies the environment variables PIDCOMM_RECORDER and TRACE_EVENTS_FOLDER, once per process.
/// Errors: ERR_ARGUMENT (PIDCOMM_RECORDER has an unknown item), those of pidcomm_recorder_watch.
void apply_environment();

}  // namespace pidcomm
