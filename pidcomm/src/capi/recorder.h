// The watch of pidcomm_recorder_watch.
#pragma once

namespace pidcomm {

/// Whether the program has a watch. After fork, its thread may be in the parent process.
bool has_watch();

}  // namespace pidcomm
