// Where the calls of the process and their phases go while a program is traced.
#pragma once

#include <atomic>
#include <cstdint>

#include "pidcomm/recorder.h"

namespace pidcomm {

/// Receives calls and phases on the threads that carry them out: first the phases of a call at
/// their ends, then the call, when its times have been taken. The times are nanoseconds of
/// CLOCK_MONOTONIC. On one thread, the times of two events nest or do not overlap.
struct CallEvents {
  /// Keeps a phase until `call` writes it. name: a static text.
  void (*phase)(const char *name, int64_t begin_ns, int64_t end_ns);
  /// prefix: "", or "start " for the part of a non-blocking call before its start returns.
  void (*call)(const char *prefix, const pidcomm_record &record, int64_t begin_ns, int64_t end_ns);
  /// The call of the kept phases has no event.
  void (*drop)();
};

/// Null: the program is not traced.
inline std::atomic<const CallEvents *> call_events = nullptr;

}  // namespace pidcomm
