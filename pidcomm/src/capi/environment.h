// Settings of the recorder and of traces in environment variables.
#pragma once

namespace pidcomm {

/// Applies the environment variables PIDCOMM_RECORDER and TRACE_EVENTS_FOLDER, once per process.
/// Keeps a handler of SIGUSR1 and a watch of the program. Errors: ERR_ARGUMENT (PIDCOMM_RECORDER
/// has an unknown item or an item twice), those of pidcomm_recorder_watch, ERR_MEMORY.
void apply_environment();

}  // namespace pidcomm
