// Sums of traces, for calls that consist of several collectives.
#pragma once

#include <algorithm>
#include <type_traits>

#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// Adds times and bytes, and keeps the larger number of threads. The other codes of the sum stay.
inline void add_trace(pidcomm_trace &sum, const pidcomm_trace &trace) {
  const auto add = [](auto &field, const auto &more) {
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(field)>, int>) field += more;
  };
#define PIDCOMM_ROW(ctype, name, ...) add(sum.name, trace.name);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  sum.threads = std::max(sum.threads, trace.threads);
}

}  // namespace pidcomm
